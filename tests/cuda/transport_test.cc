// The suite that every transport must pass, over the local one between ranks on one GPU and on two, for many orders
// in which streams run.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/cuda/cuda_device.h"
#include "tests/cuda_emulation/control.h"
#include "tests/support/sum_suite.h"
#include "tests/support/transport_suite.h"

namespace pipec {
namespace {

// Checks, when it goes, that the emulation has found nothing wrong.
class CudaWorld : public LocalWorld {
 public:
  CudaWorld(int ranks, int replicas, int devices)
      : LocalWorld(ranks, [devices](int rank) { return MakeCudaDevice(rank % devices); },
                   {.replicas = replicas}) {}
  ~CudaWorld() override { EXPECT_TRUE(cuda_emulation::TakeReports().empty()); }
};

std::unique_ptr<TransportWorld> MakeWorld(int ranks, int replicas, int devices, uint64_t seed) {
  cuda_emulation::SetDevices(devices);
  cuda_emulation::SetSeed(seed);
  return std::make_unique<CudaWorld>(ranks, replicas, devices);
}

std::vector<TransportBackend> Backends() {
  std::vector<TransportBackend> backends;
  static std::vector<std::string> names;
  names.reserve(20);
  for (int devices : {1, 2}) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      names.push_back("Cuda" + std::to_string(devices) + "Seed" + std::to_string(seed));
      backends.push_back(
          {names.back().c_str(), [=](int ranks) { return MakeWorld(ranks, 1, devices, seed); }});
    }
  }
  return backends;
}

// Ranks of the replicas in turn on one GPU and on three.
std::vector<SumBackend> SumBackends() {
  std::vector<SumBackend> backends;
  static std::vector<std::string> names;
  names.reserve(6);
  for (int devices : {1, 3}) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      names.push_back("Cuda" + std::to_string(devices) + "Seed" + std::to_string(seed));
      backends.push_back({names.back().c_str(), [=](int ranks, int replicas) {
                            return MakeWorld(ranks, replicas, devices, seed);
                          }});
    }
  }
  return backends;
}

// GPUs that can reach each other's memory do, whichever came first and however often.
TEST(CudaTransport, CopiesDoNotGoThroughTheHost) {
  for (const bool can_be_peers : {true, false}) {
    cuda_emulation::SetDevices(3, size_t{16} << 30, can_be_peers);
    for (uint64_t again = 0; again < 2; ++again) {
      cuda_emulation::SetSeed(again);
      CudaWorld world(3, 1, 3);
      for (const auto& [from, to] : {std::pair(0, 2), std::pair(2, 1)}) {
        const Piece sent = world.NewPiece<int>(from, 5), got = world.NewPiece<int>(to, 5);
        world.Write(from, sent, std::vector<int>(5, from + 1));
        const auto left = world.NewEvent(from), arrived = world.NewEvent(to);
        const MessageTag tag{from, to, 0, 0};
        ASSERT_EQ(world.transport(from).Send(world.stream(from), to, tag, {&sent, 1}, *left), absl::OkStatus());
        ASSERT_EQ(world.transport(to).Receive(world.stream(to), from, tag, {&got, 1}, *arrived), absl::OkStatus());
        ASSERT_EQ(world.Wait(to, *arrived), absl::OkStatus());
        EXPECT_EQ(world.Read<int>(to, got), std::vector<int>(5, from + 1));
      }
      EXPECT_EQ(cuda_emulation::CopiesByHost(), can_be_peers ? 0 : 2 * (static_cast<int>(again) + 1));
    }
  }
  cuda_emulation::SetDevices(1);
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(All, SumSuite, ::testing::ValuesIn(SumBackends()),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(All, TransportSuite, ::testing::ValuesIn(Backends()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace pipec
