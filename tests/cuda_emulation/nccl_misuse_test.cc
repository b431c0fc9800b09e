// The double of NCCL: what NVIDIA's documents forbid is refused, and what never ends is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/cuda_emulation/nccl_ranks.h"

namespace cuda_emulation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NcclMisuse : public NcclRanks {};

// Two ranks that both send first wait for each other, but in a group.
TEST_F(NcclMisuse, BothSendFirst) {
  Connect({{0, 1}, {1, 0}});
  auto a = On(0, {1, 0}), b = On(1, {2, 0});
  const auto exchange = [&](bool grouped) {
    for (int r : {0, 1}) {
      int* const data = (r == 0 ? *a : *b).data();
      if (grouped) {
        EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      }
      const ncclResult_t expected = grouped ? ncclSuccess : ncclInProgress;
      EXPECT_EQ(ncclSend(data, 1, ncclInt32, 1 - r, comm_[r], stream_[r]), expected);
      if (!grouped) {
        EXPECT_EQ(Poll(comm_[r]), ncclSuccess);
      }
      EXPECT_EQ(ncclRecv(data + 1, 1, ncclInt32, 1 - r, comm_[r], stream_[r]), expected);
      if (grouped) {
        EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
      }
    }
    for (int r : {0, 1}) EXPECT_EQ(Poll(comm_[r]), ncclSuccess);
  };
  exchange(true);
  EXPECT_EQ(ReadOn(0, *a), (std::vector<int>{1, 2}));
  EXPECT_EQ(ReadOn(1, *b), (std::vector<int>{2, 1}));
  EXPECT_THAT(TakeReports(), IsEmpty());
  exchange(false);
  SetPatience(std::chrono::milliseconds(20));
  EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaErrorLaunchTimeout);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("would never end")));
}

TEST_F(NcclMisuse, SizesAndTypesMustMatch) {
  for (const auto type : {ncclInt32, ncclFloat32}) {
    Begin(1);
    auto a = On(0, {1, 2, 3}), b = On(1, {0, 0, 0});
    EXPECT_EQ(Send(0, 1, *a, type == ncclInt32 ? 2 : 3), ncclInProgress);
    EXPECT_EQ(ncclRecv(b->data(), 3, type, 0, comm_[1], stream_[1]), ncclInProgress);
    for (int r : {0, 1}) Poll(comm_[r]);
    for (int r : {0, 1}) EXPECT_EQ(cudaStreamSynchronize(stream_[r]), cudaErrorLaunchFailure);
    EXPECT_THAT(TakeReports(), testing::Contains(HasSubstr("do not match")));
    SetSeed(0);
  }
}

TEST_F(NcclMisuse, WhatIsAskedWrongly) {
  auto a = On(0, {1});
  EXPECT_EQ(Send(0, 0, *a, 1), ncclInvalidArgument);
  EXPECT_EQ(Send(0, 3, *a, 1), ncclInvalidArgument);
  EXPECT_EQ(ncclSend(nullptr, 1, ncclInt32, 1, comm_[0], stream_[0]), ncclInvalidArgument);
  EXPECT_EQ(ncclSend(a->data(), 1, ncclNumTypes, 1, comm_[0], stream_[0]), ncclInvalidArgument);
  EXPECT_EQ(ncclSend(a->data(), 1, ncclInt32, 1, comm_[0], stream_[1]), ncclInvalidUsage);
  EXPECT_EQ(ncclSend(a->data(), 1, ncclInt32, 1, comm_[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  // A group with a wrong call does nothing.
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(Send(0, 1, *a, 1), ncclSuccess);
  EXPECT_EQ(Send(0, 0, *a, 1), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(Poll(comm_[0]), ncclSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaSuccess);
  EXPECT_EQ(TakeReports().size(), 8);
}

TEST_F(NcclMisuse, OneCallAfterTheOther) {
  auto a = On(0, {1, 2});
  EXPECT_EQ(Send(0, 1, *a, 1), ncclInProgress);  // not connected yet: rank 1 has not asked
  EXPECT_EQ(Poll(comm_[0]), ncclInProgress);
  EXPECT_EQ(Send(0, 2, *a, 1), ncclInvalidUsage);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("still in progress")));
}

TEST_F(NcclMisuse, AbortEndsWhatWaitsAndTheCommunicator) {
  Connect({{0, 1}});
  auto a = On(0, {1});
  EXPECT_EQ(Send(0, 1, *a, 1), ncclInProgress);
  EXPECT_EQ(Poll(comm_[0]), ncclSuccess);
  EXPECT_EQ(cudaStreamQuery(stream_[0]), cudaErrorNotReady);
  EXPECT_EQ(ncclCommAbort(comm_[0]), ncclSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaSuccess);
  EXPECT_THAT(TakeReports(), IsEmpty());
  ncclResult_t state;
  EXPECT_EQ(Send(0, 1, *a, 1), ncclInvalidArgument);
  EXPECT_EQ(ncclCommGetAsyncError(comm_[0], &state), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(comm_[0]), ncclInvalidArgument);
  EXPECT_EQ(TakeReports().size(), 3);
}

TEST_F(NcclMisuse, StreamsOfOneCommunicatorNeedAnOrder) {
  for (bool ordered : {true, false}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Begin(seed);
      Connect({{0, 1}});
      auto a = On(0, {1, 2}), b = On(1, {0, 0});
      cudaSetDevice(0);
      cudaStream_t second;
      cudaEvent_t event;
      ASSERT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
      ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
      EXPECT_EQ(Send(0, 1, *a, 1), ncclInProgress);
      EXPECT_EQ(Poll(comm_[0]), ncclSuccess);
      if (ordered) {
        EXPECT_EQ(cudaEventRecord(event, stream_[0]), cudaSuccess);
        EXPECT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
      }
      EXPECT_EQ(ncclSend(a->data() + 1, 1, ncclInt32, 1, comm_[0], second), ncclInProgress);
      EXPECT_EQ(Poll(comm_[0]), ncclSuccess);
      for (int m = 0; ordered && m < 2; ++m) {
        EXPECT_EQ(ncclRecv(b->data() + m, 1, ncclInt32, 0, comm_[1], stream_[1]), ncclInProgress);
        EXPECT_EQ(Poll(comm_[1]), ncclSuccess);
      }
      SetPatience(std::chrono::milliseconds(20));
      EXPECT_EQ(cudaStreamSynchronize(second), ordered ? cudaSuccess : cudaErrorLaunchFailure);
      if (ordered) {
        EXPECT_EQ(ReadOn(1, *b), (std::vector<int>{1, 2}));
        EXPECT_THAT(TakeReports(), IsEmpty());
      } else {
        EXPECT_THAT(TakeReports(), testing::Contains(HasSubstr("nothing orders the two")));
      }
      SetSeed(0);
      cudaStreamDestroy(second);
      cudaEventDestroy(event);
    }
  }
}

// Whoever touches the bytes of a message that may be under way is at fault, in every order.
TEST_F(NcclMisuse, BytesUnderWayAreNotTouched) {
  for (bool sender : {true, false}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Begin(seed);
      auto a = On(0, {1}), b = On(1, {0});
      EXPECT_EQ(Send(0, 1, *a, 1), ncclInProgress);
      EXPECT_EQ(Receive(0, 1, *b, 1), ncclInProgress);
      for (int r : {0, 1}) EXPECT_EQ(Poll(comm_[r]), ncclSuccess);
      cudaSetDevice(sender ? 0 : 1);
      cudaStream_t other;
      ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
      EXPECT_EQ(cudaMemsetAsync((sender ? *a : *b).data(), 0, 4, other), cudaSuccess);
      EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
      EXPECT_THAT(TakeReports(), testing::Contains(HasSubstr("race")));
      SetSeed(0);
      cudaStreamDestroy(other);
    }
  }
}

// In a non-blocking group nothing is on the stream before the communicator says so: an event that is recorded
// earlier is none.
TEST_F(NcclMisuse, AnEventRecordedTooEarlyOrdersNothing) {
  int found = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Begin(seed);
    Connect({{0, 1}});
    auto a = On(0, {1}), b = On(1, {0});
    cudaEvent_t event;
    cudaStream_t other;
    ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(Receive(0, 1, *b, 1), ncclInProgress);
    EXPECT_EQ(cudaEventRecord(event, stream_[1]), cudaSuccess);
    EXPECT_EQ(Send(0, 1, *a, 1), ncclInProgress);
    for (int r : {0, 1}) EXPECT_EQ(Poll(comm_[r]), ncclSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(b->data(), 0, 4, other), cudaSuccess);
    found += cudaDeviceSynchronize() == cudaErrorLaunchFailure;
    SetSeed(0);
    cudaStreamDestroy(other);
    cudaEventDestroy(event);
  }
  EXPECT_EQ(found, 20);
}

// NCCL waits at a communicator's end for the graphs that have messages of it.
TEST_F(NcclMisuse, GraphsEndBeforeTheirCommunicators) {
  for (const bool in_time : {true, false}) {
    Begin(0);
    Connect({{0, 1}});
    auto a = On(0, {1}), b = On(1, {0});
    cudaGraph_t graph[2];
    cudaGraphExec_t exec[2];
    for (int r : {0, 1}) {
      ASSERT_EQ(cudaStreamBeginCapture(stream_[r], cudaStreamCaptureModeRelaxed), cudaSuccess);
      EXPECT_EQ(r == 0 ? Send(0, 1, *a, 1) : Receive(0, 1, *b, 1), ncclInProgress);
      EXPECT_EQ(Poll(comm_[r]), ncclSuccess);
      ASSERT_EQ(cudaStreamEndCapture(stream_[r], &graph[r]), cudaSuccess);
      ASSERT_EQ(cudaGraphInstantiate(&exec[r], graph[r], 0), cudaSuccess);
      ASSERT_EQ(cudaGraphDestroy(graph[r]), cudaSuccess);
    }
    if (in_time) {
      for (int r : {0, 1}) EXPECT_EQ(cudaGraphExecDestroy(exec[r]), cudaSuccess);
    }
    EXPECT_EQ(ncclCommAbort(comm_[0]), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm_[1]), ncclSuccess);
    const auto says = [](const char* call) { return HasSubstr(std::string(call) + " would never end: a graph"); };
    const std::vector<std::string> reports = TakeReports();
    if (in_time) {
      EXPECT_THAT(reports, IsEmpty());
      continue;
    }
    EXPECT_THAT(reports, ElementsAre(says("ncclCommAbort"), says("ncclCommDestroy")));
    for (int r : {0, 1}) EXPECT_EQ(cudaGraphExecDestroy(exec[r]), cudaSuccess);
  }
}

// To abort one may wait for the device, where messages of another wait for their peers.
TEST_F(NcclMisuse, CommunicatorsOfADeviceAreAbortedTogether) {
  for (const bool grouped : {true, false}) {
    Begin(0);
    const std::vector<ncclComm_t> others = Make();
    Connect({{0, 1}});
    auto a = On(0, {1});
    EXPECT_EQ(Send(0, 1, *a, 1), ncclInProgress);
    EXPECT_EQ(Poll(comm_[0]), ncclSuccess);
    EXPECT_EQ(cudaStreamQuery(stream_[0]), cudaErrorNotReady);
    if (grouped) {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    }
    EXPECT_EQ(ncclCommAbort(others[0]), ncclSuccess);
    EXPECT_EQ(ncclCommAbort(comm_[0]), ncclSuccess);
    if (grouped) {
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaSuccess);
    const std::vector<std::string> reports = TakeReports();
    if (grouped) {
      EXPECT_THAT(reports, IsEmpty());
    } else {
      EXPECT_THAT(reports, ElementsAre(HasSubstr("not aborted in the same group")));
    }
    for (int r : {1, 2}) EXPECT_EQ(ncclCommAbort(others[r]), ncclSuccess);
  }
}

TEST_F(NcclMisuse, ErrorsAtACallAndLater) {
  Connect({{0, 1}});
  auto a = On(0, {1}), b = On(1, {0});
  FailCall(1);
  EXPECT_EQ(Send(0, 1, *a, 1), ncclUnhandledCudaError);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("ncclSend: the injected error")));
  EXPECT_EQ(Send(0, 1, *a, 1), ncclInProgress);
  EXPECT_EQ(Poll(comm_[0]), ncclSuccess);
  BreakCommunicators(1);
  EXPECT_EQ(Poll(comm_[1]), ncclRemoteError);
  EXPECT_EQ(Receive(0, 1, *b, 1), ncclRemoteError);
  EXPECT_EQ(cudaStreamQuery(stream_[0]), cudaErrorNotReady);
  EXPECT_EQ(ncclCommAbort(comm_[0]), ncclSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaSuccess);
  // What gives back gives back.
  FailCall(1);
  const size_t before = LiveCommunicators();
  EXPECT_EQ(ncclCommAbort(comm_[1]), ncclUnhandledCudaError);
  EXPECT_EQ(LiveCommunicators(), before - 1);
}

}  // namespace
}  // namespace cuda_emulation
