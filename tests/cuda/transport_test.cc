// The suite that every transport must pass, over the local one between ranks on one GPU and on two, for many orders
// in which streams run.
#include <gtest/gtest.h>

#include <memory>
#include <string>
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

}  // namespace

INSTANTIATE_TEST_SUITE_P(All, SumSuite, ::testing::ValuesIn(SumBackends()),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(All, TransportSuite, ::testing::ValuesIn(Backends()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace pipec
