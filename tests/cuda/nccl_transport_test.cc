// The suite that every transport must pass, over NCCL between GPUs, for many orders in which streams run; and what
// is NCCL's own.
#include "runtime/transport/nccl/nccl_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_device.h"
#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/nccl_control.h"
#include "tests/support/sum_suite.h"
#include "tests/support/transport_suite.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(30);

// Hubs as long as the world's transports.
class Hubs {
 protected:
  Hubs(int ranks, int replicas, bool one_process) : one_process_(one_process) {
    const std::string identifier = NewNcclIdentifier().value();
    for (int r = 0; r < (one_process ? 1 : ranks); ++r)
      hubs_.push_back(std::make_unique<NcclHub>(ranks, identifier,
                                                NcclOptions{.replicas = replicas, .timeout = kTimeout}));
  }
  NcclHub& hub(int rank) { return *hubs_[one_process_ ? 0 : rank]; }

 private:
  bool one_process_;
  std::vector<std::unique_ptr<NcclHub>> hubs_;
};

// Checks, when it goes, that the emulation has found nothing wrong.
class NcclWorld : private Hubs, public TransportWorld {
 public:
  NcclWorld(int ranks, bool one_process, int replicas)
      : Hubs(ranks, replicas, one_process),
        TransportWorld(
            ranks, [](int rank) { return MakeCudaDevice(rank); },
            [this](int rank, Device& device) { return hub(rank).Connect(rank, device); }) {}
  ~NcclWorld() override { EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty()); }
};

std::unique_ptr<NcclWorld> MakeNcclWorld(int ranks, uint64_t seed, bool one_process = true,
                                         int replicas = 1) {
  cuda_emulation::SetDevices(ranks);
  cuda_emulation::SetSeed(seed);
  return std::make_unique<NcclWorld>(ranks, one_process, replicas);
}

std::vector<TransportBackend> NcclBackends() {
  std::vector<TransportBackend> backends;
  static std::vector<std::string> names;
  names.reserve(10);
  for (uint64_t seed = 0; seed < 5; ++seed) {
    names.push_back(absl::StrCat("NcclSeed", seed));
    backends.push_back({names.back().c_str(), [=](int ranks) { return MakeNcclWorld(ranks, seed); }});
  }
  return backends;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Nccl, SumSuite,
                         ::testing::Values(SumBackend{"OneProcess",
                                                      [](int ranks, int replicas) {
                                                        return MakeNcclWorld(ranks, 1, true, replicas);
                                                      }},
                                           SumBackend{"AProcessARank",
                                                      [](int ranks, int replicas) {
                                                        return MakeNcclWorld(ranks, 2, false, replicas);
                                                      }}),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(Nccl, TransportSuite, ::testing::ValuesIn(NcclBackends()),
                         [](const auto& info) { return std::string(info.param.name); });

namespace {

// Rank 0 sends `count` messages to rank 1, and gets each back.
void PingPong(TransportWorld& world, int count) {
  const auto rank = [&](int me) {
    const int other = 1 - me;
    std::vector<std::unique_ptr<Event>> events;
    const Piece piece = world.NewPiece<int>(me, 100);
    if (me == 0) world.Write(0, piece, std::vector<int>(100, 7));
    for (int m = 0; m < count; ++m) {
      for (const bool sends : {me == 0, me == 1}) {
        events.push_back(world.NewEvent(me));
        const MessageTag tag{sends ? me : other, sends ? other : me, 0, m};
        ASSERT_EQ(
            sends ? world.transport(me).Send(world.stream(me), other, tag, {&piece, 1}, *events.back())
                  : world.transport(me).Receive(world.stream(me), other, tag, {&piece, 1}, *events.back()),
            absl::OkStatus());
        ASSERT_EQ(world.Wait(me, *events.back()), absl::OkStatus());
      }
    }
    EXPECT_EQ(world.Read<int>(me, piece), std::vector<int>(100, 7));
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
}

// One hub a rank, as where each is a process of its own: nothing but the identifier is shared.
TEST(NcclTransport, RanksOfManyProcesses) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto world = MakeNcclWorld(2, seed, /*one_process=*/false);
    PingPong(*world, 10);
  }
}

TEST(NcclTransport, EveryTwoRanksAreConnected) {
  for (const int ranks : {1, 2, 3, 4, 5, 8}) {
    const auto world = MakeNcclWorld(ranks, 3);
    std::vector<std::thread> threads;
    for (int me = 0; me < ranks; ++me) {
      threads.emplace_back([&, me] {
        std::vector<std::unique_ptr<Event>> events;
        std::vector<Piece> got;
        for (int peer = 0; peer < ranks; ++peer) {
          if (peer == me) continue;
          for (const bool sends : {true, false}) {
            events.push_back(world->NewEvent(me));
            Piece piece = world->NewPiece<int>(me, 1);
            if (sends) world->Write(me, piece, std::vector<int>{100 * me + peer});
            if (!sends) got.push_back(piece);
            const MessageTag tag{sends ? me : peer, sends ? peer : me, 0, 0};
            ASSERT_EQ(
                sends
                    ? world->transport(me).Send(world->stream(me), peer, tag, {&piece, 1}, *events.back())
                    : world->transport(me).Receive(world->stream(me), peer, tag, {&piece, 1}, *events.back()),
                absl::OkStatus());
          }
        }
        for (const auto& event : events) ASSERT_EQ(world->Wait(me, *event), absl::OkStatus());
        for (int peer = 0, k = 0; peer < ranks; ++peer) {
          if (peer == me) continue;
          EXPECT_EQ(world->Read<int>(me, got[k++]), std::vector<int>{100 * peer + me});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// A peer is gone while its message is awaited: both ends learn of it long before the limit.
TEST(NcclTransport, AnAsynchronousErrorEndsTheWaits) {
  for (const bool one_process : {true, false}) {
    const auto world = MakeNcclWorld(2, 1, one_process);
    cuda_emulation::BreakCommunicators(1);
    const auto rank = [&](int me) {
      const auto event = world->NewEvent(me);
      const Piece piece = world->NewPiece<int>(me, 4);
      const MessageTag tag{0, 1, 0, 0};
      absl::Status status = me == 0
                                ? world->transport(0).Send(world->stream(0), 1, tag, {&piece, 1}, *event)
                                : world->transport(1).Receive(world->stream(1), 0, tag, {&piece, 1}, *event);
      status.Update(world->Wait(me, *event));
      status.Update(
          world->stream(me).Synchronize(absl::Now() + absl::Seconds(me == 1 || one_process ? 20 : 0)));
      EXPECT_FALSE(status.ok());
      if (me == 1 || one_process) {
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr("remote process exited"));
        world->transport(me).Abort(status);
      }
    };
    std::thread other(rank, 1);
    rank(0);
    other.join();
    cuda_emulation::TakeReports();
  }
}

// A replica that never comes to a sum, and one whose GPU is gone while it is awaited.
TEST(NcclTransport, ASumEndsWithAnErrorOrAnAbort) {
  const auto world = MakeNcclWorld(2, 1, /*one_process=*/true, /*replicas=*/2);
  const Piece piece = world->NewPiece<float>(0, 4);
  const Summand summand{piece.data, 4, DType::kFloat32}, ints{piece.data, 4, DType::kInt32};
  const auto event = world->NewEvent(0), late = world->NewEvent(0);
  EXPECT_THAT(std::string(world->transport(0).AddUp(world->stream(0), 0, {&ints, 1}, *late).message()),
              HasSubstr("int32; float32 and float64 are added up"));
  ASSERT_EQ(world->transport(0).AddUp(world->stream(0), 0, {&summand, 1}, *event), absl::OkStatus());
  cuda_emulation::BreakCommunicators(0);
  absl::Status status = world->Wait(0, *event);
  status.Update(world->stream(0).Synchronize(absl::Now() + absl::Seconds(20)));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("remote process exited"));
  world->transport(0).Abort(status);
  EXPECT_EQ(world->transport(1).AddUp(world->stream(1), 0, {&summand, 1}, *late), status);
  cuda_emulation::TakeReports();
}

TEST(NcclTransport, AbortEndsAWaitForTheGpu) {
  const auto world = MakeNcclWorld(3, 1);
  const auto hung = world->NewEvent(0);
  std::thread failing([&] { world->transport(2).Abort(absl::InternalError("rank 2 fell")); });
  failing.join();
  EXPECT_EQ(world->transport(0).Send(world->stream(0), 1, {0, 1, 0, 0}, {}, *hung),
            absl::InternalError("rank 2 fell"));
}

// Starts and exchanges messages with an error at each k-th call: all ends in a status, or well, and everything is
// given back.
TEST(NcclTransport, AnErrorAtAnyCallIsAStatus) {
  cuda_emulation::SetDevices(2);
  int failed = 0;
  bool more = true;
  for (int64_t k = 1; more; k += 2) {
    cuda_emulation::SetSeed(k);
    cuda_emulation::SetPatience(std::chrono::milliseconds(500));
    const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
    const size_t communicators = cuda_emulation::LiveCommunicators();
    {
      NcclHub hub(2, *NewNcclIdentifier(), {.timeout = absl::Seconds(5)});
      std::vector<std::unique_ptr<Device>> devices;
      std::vector<std::unique_ptr<Transport>> transports;
      for (int r = 0; r < 2; ++r) {
        devices.push_back(MakeCudaDevice(r));
        transports.push_back(hub.Connect(r, *devices[r]));
      }
      cuda_emulation::FailCall(k);
      const auto run = [&](int me) -> absl::Status {
        const absl::Time deadline = absl::Now() + absl::Seconds(5);
        ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, devices[me]->NewStream());
        RETURN_IF_ERROR(transports[me]->Start({{1 - me, true}, {1 - me, false}}));
        ASSIGN_OR_RETURN(const std::unique_ptr<Event> event, devices[me]->NewEvent());
        ASSIGN_OR_RETURN(std::byte* const memory, devices[me]->Allocate(64));
        const Piece piece{memory, 64};
        RETURN_IF_ERROR(me == 0 ? transports[0]->Send(*stream, 1, {0, 1, 0, 0}, {&piece, 1}, *event)
                                : transports[1]->Receive(*stream, 0, {0, 1, 0, 0}, {&piece, 1}, *event));
        RETURN_IF_ERROR(stream->Wait(*event, deadline));
        return stream->Synchronize(deadline);
      };
      absl::Status status[2];
      const auto rank = [&](int me) {
        status[me] = run(me);
        if (!status[me].ok()) transports[me]->Abort(status[me]);
      };
      std::thread other(rank, 1);
      rank(0);
      other.join();
      more = cuda_emulation::CallCount() >= k;
      failed += !status[0].ok() || !status[1].ok();
      for (const absl::Status& each : status)
        EXPECT_FALSE(absl::IsDeadlineExceeded(each)) << k << ": " << each;
    }
    EXPECT_EQ(cuda_emulation::LiveCommunicators(), communicators) << k;
    EXPECT_TRUE(cuda_emulation::CountLiveObjects() == before)
        << "call " << k << ": something was not given back";
  }
  EXPECT_GT(failed, 20);
  cuda_emulation::SetPatience(std::chrono::seconds(20));
  cuda_emulation::SetSeed(0);
}

TEST(NcclTransport, WhatIsSetUpWrongly) {
  cuda_emulation::SetDevices(1);
  cuda_emulation::SetSeed(0);
  NcclHub hub(2, *NewNcclIdentifier(), {.timeout = absl::Seconds(5)});
  const auto first = MakeCudaDevice(0), second = MakeCudaDevice(0);
  auto a = hub.Connect(0, *first), b = hub.Connect(1, *second);
  absl::Status other;
  std::thread thread([&] {
    other = b->Start({{0, false}});
    if (!other.ok()) b->Abort(other);
  });
  absl::Status status = a->Start({{1, true}});
  if (!status.ok()) a->Abort(status);
  thread.join();
  status.Update(other);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("duplicate GPU"));
  cuda_emulation::TakeReports();
}

}  // namespace
}  // namespace pipec
