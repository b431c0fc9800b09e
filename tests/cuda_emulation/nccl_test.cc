// The double of NCCL: what is right arrives, in whatever order streams run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/cuda_emulation/nccl_ranks.h"

namespace cuda_emulation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Nccl : public NcclRanks {};

TEST_F(Nccl, MessagesArriveInTheOrderOfTheirRoute) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Begin(seed);
    auto a = On(0, {1, 2, 3}), b = On(1, {0, 0, 0}), c = On(2, {7, 8, 9});
    EXPECT_EQ(Receive(0, 1, *b, 1), ncclInProgress);
    EXPECT_EQ(Send(0, 1, *a, 1), ncclInProgress);
    for (int r : {0, 1}) EXPECT_EQ(Poll(comm_[r]), ncclSuccess);
    // One kernel for both of rank 1's; what came first on a route is received first.
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclRecv(b->data() + 1, 1, ncclInt32, 0, comm_[1], stream_[1]), ncclSuccess);
    EXPECT_EQ(ncclRecv(b->data() + 2, 1, ncclInt32, 2, comm_[1], stream_[1]), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
    EXPECT_EQ(Send(2, 1, *c, 1), ncclInProgress);
    EXPECT_EQ(ncclSend(a->data() + 1, 1, ncclInt32, 1, comm_[0], stream_[0]), ncclInProgress);
    for (int r : {0, 1, 2}) EXPECT_EQ(Poll(comm_[r]), ncclSuccess);
    EXPECT_EQ(ReadOn(1, *b), (std::vector<int>{1, 2, 7}));
    EXPECT_THAT(TakeReports(), IsEmpty());
  }
}

TEST_F(Nccl, StartsWhenAllRanksHaveCome) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config = Config();
  ncclComm_t first, second, third;
  cudaSetDevice(0);
  ASSERT_EQ(ncclCommInitRankConfig(&first, 2, id, 0, &config), ncclInProgress);
  EXPECT_EQ(Poll(first), ncclInProgress);
  EXPECT_EQ(ncclSend(nullptr, 0, ncclInt8, 1, first, stream_[0]), ncclInvalidUsage);
  EXPECT_EQ(ncclCommInitRankConfig(&third, 2, id, 1, &config), ncclInvalidUsage);  // the same GPU
  cudaSetDevice(1);
  EXPECT_EQ(ncclCommInitRankConfig(&third, 3, id, 1, &config), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankConfig(&third, 2, id, 2, &config), ncclInvalidArgument);
  ncclConfig_t zero = {};
  EXPECT_EQ(ncclCommInitRankConfig(&third, 2, id, 1, &zero), ncclInvalidArgument);
  ASSERT_EQ(ncclCommInitRankConfig(&second, 2, id, 1, &config), ncclInProgress);
  EXPECT_EQ(Poll(first), ncclSuccess);
  EXPECT_EQ(Poll(second), ncclSuccess);
  EXPECT_THAT(TakeReports(),
              ElementsAre(HasSubstr("still in progress"), HasSubstr("duplicate GPU"), HasSubstr("disagree"),
                          HasSubstr("rank 2 of 2"), HasSubstr("NCCL_CONFIG_INITIALIZER")));
  for (ncclComm_t comm : {first, second}) ncclCommAbort(comm);
}

TEST_F(Nccl, BlockingCallsWaitForTheOtherRanks) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t made[2];
  const auto start = [&](int rank) {
    cudaSetDevice(rank);
    ncclConfig_t config = Config(1);
    EXPECT_EQ(ncclCommInitRankConfig(&made[rank], 2, id, rank, &config), ncclSuccess);
  };
  std::thread other(start, 1);
  start(0);
  other.join();
  for (ncclComm_t comm : made) ncclCommAbort(comm);
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  SetPatience(std::chrono::milliseconds(20));
  ncclConfig_t config = Config(1);
  EXPECT_EQ(ncclCommInitRankConfig(&made[0], 2, id, 0, &config), ncclInternalError);
  ncclCommAbort(made[0]);
}

TEST_F(Nccl, SplitsByColorAndKey) {
  std::vector<ncclComm_t> child(kRanks, comm_[0]);
  const int color[] = {4, NCCL_SPLIT_NOCOLOR, 4}, key[] = {1, 0, 0};
  for (int r = 0; r < kRanks; ++r)
    EXPECT_EQ(ncclCommSplit(comm_[r], color[r], key[r], &child[r], nullptr), ncclInProgress);
  EXPECT_EQ(child[0], comm_[0]);  // not before the split is over
  for (ncclComm_t comm : comm_) EXPECT_EQ(Poll(comm), ncclSuccess);
  EXPECT_EQ(child[1], nullptr);
  for (int r : {0, 2}) EXPECT_EQ(Poll(child[r]), ncclSuccess);
  // Rank 2 is rank 0 of the two.
  auto from = On(2, {5}), to = On(0, {0});
  EXPECT_EQ(ncclSend(from->data(), 1, ncclInt32, 1, child[2], stream_[2]), ncclInProgress);
  EXPECT_EQ(ncclRecv(to->data(), 1, ncclInt32, 0, child[0], stream_[0]), ncclInProgress);
  for (int r : {0, 2}) EXPECT_EQ(Poll(child[r]), ncclSuccess);
  EXPECT_EQ(ReadOn(0, *to), std::vector<int>{5});
  EXPECT_THAT(TakeReports(), IsEmpty());
  for (int r : {0, 2}) ncclCommAbort(child[r]);
}

TEST_F(Nccl, AGraphHasMessagesOfRanksThatAreConnected) {
  for (bool connected : {false, true}) {
    Begin(3);
    if (connected) Connect({{0, 1}});
    auto a = On(0, {1}), b = On(1, {0});
    cudaGraph_t graph[2];
    cudaGraphExec_t exec[2];
    for (int r : {0, 1}) {
      cudaSetDevice(r);
      ASSERT_EQ(cudaStreamBeginCapture(stream_[r], cudaStreamCaptureModeThreadLocal), cudaSuccess);
      EXPECT_EQ(r == 0 ? Send(0, 1, *a, 1) : Receive(0, 1, *b, 1),
                connected ? ncclInProgress : ncclInvalidUsage);
      if (connected) {
        EXPECT_EQ(Poll(comm_[r]), ncclSuccess);
      }
      EXPECT_EQ(cudaStreamEndCapture(stream_[r], &graph[r]),
                connected ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
      if (connected) {
        ASSERT_EQ(cudaGraphInstantiate(&exec[r], graph[r], 0), cudaSuccess);
      }
    }
    if (!connected) {
      EXPECT_THAT(TakeReports(),
                  testing::Contains(HasSubstr("the first message between two ranks is captured")));
      continue;
    }
    for (int launch = 1; launch <= 3; ++launch) {
      for (int r : {0, 1}) {
        cudaSetDevice(r);
        if (r == 0) {
          EXPECT_EQ(cudaMemcpyAsync(a->data(), &launch, 4, cudaMemcpyHostToDevice, stream_[0]), cudaSuccess);
        }
        ASSERT_EQ(cudaGraphLaunch(exec[r], stream_[r]), cudaSuccess);
      }
      EXPECT_EQ(ReadOn(1, *b), std::vector<int>{launch});
    }
    EXPECT_THAT(TakeReports(), IsEmpty());
    for (int r : {0, 1}) {
      cudaGraphExecDestroy(exec[r]);
      cudaGraphDestroy(graph[r]);
    }
  }
}

// Each element on each rank, in a group with another, alone, in place and beside; begun in any order.
TEST_F(Nccl, AllReduceGivesEveryRankTheSum) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Begin(seed);
    std::vector<std::unique_ptr<DeviceArray<float>>> data, results;
    std::vector<std::unique_ptr<DeviceArray<double>>> wide;
    for (int r = 0; r < kRanks; ++r) {
      cudaSetDevice(r);
      data.push_back(std::make_unique<DeviceArray<float>>(std::vector<float>{1.0f + r, 10.0f * r}));
      results.push_back(std::make_unique<DeviceArray<float>>(std::vector<float>{0, 0}));
      wide.push_back(std::make_unique<DeviceArray<double>>(std::vector<double>{0.5 * r}));
    }
    for (int r = 0; r < kRanks; ++r) {
      cudaSetDevice(r);
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      EXPECT_EQ(
          ncclAllReduce(data[r]->data(), results[r]->data(), 2, ncclFloat32, ncclSum, comm_[r], stream_[r]),
          ncclSuccess);
      EXPECT_EQ(
          ncclAllReduce(wide[r]->data(), wide[r]->data(), 1, ncclFloat64, ncclSum, comm_[r], stream_[r]),
          ncclSuccess);
      EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
    }
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(Poll(comm_[r]), ncclSuccess);
    for (int r = 0; r < kRanks; ++r) {
      cudaSetDevice(r);
      EXPECT_EQ(results[r]->Read(), (std::vector<float>{6, 30}));
      EXPECT_EQ(wide[r]->Read(), (std::vector<double>{1.5}));
    }
    EXPECT_THAT(TakeReports(), IsEmpty());
  }
}

TEST_F(Nccl, ASumIsCapturedOnlyAfterAFirst) {
  auto a = On(0, {1});
  cudaSetDevice(0);
  ASSERT_EQ(cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(ncclAllReduce(a->data(), a->data(), 1, ncclFloat32, ncclSum, comm_[0], stream_[0]),
            ncclInvalidUsage);
  cudaGraph_t graph;
  EXPECT_EQ(cudaStreamEndCapture(stream_[0], &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_THAT(TakeReports(), testing::Contains(HasSubstr("is captured")));
}

TEST_F(Nccl, SumsThatDoNotMatchBreakTheirGpus) {
  auto one = On(0, {1});
  EXPECT_EQ(ncclAllReduce(one->data(), one->data(), 1, ncclFloat32, ncclMax, comm_[0], stream_[0]),
            ncclInvalidArgument);
  EXPECT_THAT(TakeReports(), testing::Contains(HasSubstr("this double has not")));
  for (int r = 0; r < kRanks; ++r) {
    auto a = On(r, {1, 2});
    EXPECT_EQ(ncclAllReduce(a->data(), a->data(), r == 1 ? 1 : 2, ncclFloat32, ncclSum, comm_[r], stream_[r]),
              ncclInProgress);
    (void)a.release();  // read until the sum fails
  }
  for (int r = 0; r < kRanks; ++r) Poll(comm_[r]);
  cudaSetDevice(0);
  EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaErrorLaunchFailure);
  EXPECT_THAT(TakeReports(), testing::Contains(HasSubstr("sums that do not match")));
}

TEST_F(Nccl, FinalizeEndsWhenAllRanksAreThrough) {
  const size_t before = LiveCommunicators();
  auto a = On(0, {1}), b = On(1, {0});
  EXPECT_EQ(Send(0, 1, *a, 1), ncclInProgress);
  EXPECT_EQ(Receive(0, 1, *b, 1), ncclInProgress);
  for (int r : {0, 1}) EXPECT_EQ(Poll(comm_[r]), ncclSuccess);
  for (int r : {0, 1}) EXPECT_EQ(ncclCommFinalize(comm_[r]), ncclInProgress);
  EXPECT_EQ(Poll(comm_[0]), ncclInProgress);
  EXPECT_EQ(Send(0, 1, *a, 1), ncclInvalidUsage);
  EXPECT_EQ(ncclCommFinalize(comm_[2]), ncclInProgress);
  for (ncclComm_t comm : comm_) EXPECT_EQ(Poll(comm), ncclSuccess);
  for (ncclComm_t comm : comm_) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(LiveCommunicators(), before - kRanks);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("finalized")));
  comm_ = Make();
  EXPECT_EQ(Send(0, 1, *a, 1), ncclInProgress);
  EXPECT_EQ(ncclCommDestroy(comm_[0]), ncclInvalidUsage);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("work under way")));
}

}  // namespace
}  // namespace cuda_emulation
