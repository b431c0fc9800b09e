// An error at any call of CUDA, cuBLASLt or NCCL, while a plan trains on ranks that talk by NCCL: the run ends with
// the call's name before its limit, no rank stays behind, and everything is given back. With PIPEC_ALL_PLACES=1 at
// every call; else at the first of every name, the last, and some between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/transport/nccl/nccl_transport.h"
#include "tests/cuda/nccl_run.h"
#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/nccl_control.h"

namespace pipec {
namespace {

// Where the text of an error says in words of its own what failed.
std::string WordsOf(const std::string& call) {
  if (call == "cudaLaunchKernel") return "launching a kernel";
  if (call == "cub::DeviceReduce") return "device-wide sum";
  return call;
}

class NcclErrorRuns : public CudaPlans {
 protected:
  void Prepare(int ranks) {
    MakeModel("mlp --hidden=4 --inputs=4 --layers=4 --classes=3 --batch=1");
    plan_ = MakePlan(absl::StrCat("--schedule=1f1b --microbatches=2 --stages=", ranks));
    cuda_emulation::SetDevices(ranks);
  }
  void TearDown() override {
    cuda_emulation::SetSeed(0);
    CudaPlans::TearDown();
  }

  std::string plan_;
};

// Ranks of one process, and whether steps become graphs.
class NcclErrors : public NcclErrorRuns, public testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  Trained TrainOnRanks() {
    return Train(plan_, OnCuda(ranks(), std::get<1>(GetParam())),
                 {.steps = 3, .timeout = kLimit, .meeting = ByNccl(/*one_process=*/true)});
  }
  // At the k-th call of the name. False: there were not so many.
  bool TryPlace(const std::string& name, int64_t k);

  static constexpr absl::Duration kLimit = absl::Seconds(20);
  Trained right_;
};

bool NcclErrors::TryPlace(const std::string& name, int64_t k) {
  SCOPED_TRACE(absl::StrCat(name, " failed at its call ", k));
  const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
  const size_t communicators = cuda_emulation::LiveCommunicators();
  cuda_emulation::SetSeed(k);
  cuda_emulation::FailCallOf(name, k, cudaErrorNotSupported);
  const Trained run = TrainOnRanks();
  const std::vector<std::string> reports = cuda_emulation::TakeReports();
  EXPECT_TRUE(cuda_emulation::CountLiveObjects() == before) << "something was not given back: " << run.status;
  EXPECT_EQ(cuda_emulation::LiveCommunicators(), communicators) << run.status;
  if (reports.empty()) {
    ExpectSame(run, right_);
    return false;
  }
  // What is captured when a rank fails is given up as it stands.
  EXPECT_THAT(reports[0], testing::HasSubstr("the injected error"));
  for (size_t i = 1; i < reports.size(); ++i)
    EXPECT_THAT(reports[i], testing::HasSubstr("ends before it has waited for all streams that took part"));
  // The last groups are of aborts.
  const bool gives_back = absl::StrContains(name, "Destroy") || absl::StrContains(name, "Free") ||
                          absl::StrContains(name, "Abort") ||
                          (absl::StartsWith(name, "ncclGroup") && run.status.ok());
  if (gives_back) {
    ExpectSame(run, right_);
    return true;
  }
  EXPECT_FALSE(run.status.ok()) << "nobody noticed";
  EXPECT_FALSE(absl::IsDeadlineExceeded(run.status)) << run.status;
  EXPECT_THAT(std::string(run.status.message()),
              testing::AllOf(testing::HasSubstr(WordsOf(name)),
                             testing::ContainsRegex(
                                 "rank [0-9].*(cudaErrorNotSupported|CUBLAS_STATUS_|unhandled cuda)")));
  return true;
}

TEST_P(NcclErrors, EndTheRunWithTheNameOfTheCall) {
  Prepare(ranks());
  if (HasFatalFailure()) return;
  cuda_emulation::SetSeed(0);
  right_ = TrainOnRanks();
  ASSERT_TRUE(right_.status.ok()) << right_.status;
  std::map<std::string, int64_t> counts = cuda_emulation::CallCounts();
  counts.erase("ncclGetUniqueId");  // before the run
  const bool all = std::getenv("PIPEC_ALL_PLACES") != nullptr;
  std::mt19937 random(ranks());
  int64_t calls = 0, tried = 0;
  for (const auto& [name, count] : counts) {
    calls += count;
    std::set<int64_t> places = {1, count};
    for (int64_t k = 2; k < count; ++k) {
      if (all || random() % count == 0) places.insert(k);
    }
    for (const int64_t k : places) {
      const bool failed = TryPlace(name, k);
      tried += failed;
      // Who waits asks as often as it takes: of the last questions there may have been fewer.
      EXPECT_TRUE(failed || k > 1) << name;
    }
  }
  std::printf("an error at %d of %d calls, of %zu names\n", static_cast<int>(tried), static_cast<int>(calls),
              counts.size());
  for (const char* name : {"cudaLaunchKernel", "cublasLtMatmul", "ncclSend", "ncclGroupEnd", "ncclCommSplit"})
    EXPECT_EQ(counts.count(name), 1u) << name;
  for (const char* name : {"cudaStreamBeginCapture", "cudaGraphInstantiate", "cudaGraphLaunch"})
    EXPECT_EQ(counts.count(name), std::get<1>(GetParam()) ? 1u : 0u) << name;
}

// Nothing tells one process that another has failed: it ends at its limit.
TEST_F(NcclErrorRuns, OfAnotherProcessEndAtTheLimit) {
  Prepare(2);
  if (HasFatalFailure()) return;
  for (const char* name : {"cudaMalloc", "cudaGraphLaunch"}) {
    SCOPED_TRACE(name);
    const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
    const size_t communicators = cuda_emulation::LiveCommunicators();
    cuda_emulation::SetSeed(1);
    cuda_emulation::FailCallOf(name, 1, cudaErrorNotSupported);
    const absl::Duration limit = absl::Seconds(3);
    const Trained run = Train(plan_, Alone(/*graphs=*/true),
                              {.steps = 3,
                               .timeout = limit,
                               .meeting = ByNccl(/*one_process=*/false, /*one_stream=*/false, limit)});
    EXPECT_THAT(std::string(run.status.message()),
                testing::AllOf(testing::HasSubstr(name), testing::HasSubstr("cudaErrorNotSupported")));
    EXPECT_TRUE(cuda_emulation::CountLiveObjects() == before) << "something was not given back";
    EXPECT_EQ(cuda_emulation::LiveCommunicators(), communicators);
  }
}

TEST(NcclIdentifier, NamesTheCallThatFailed) {
  cuda_emulation::SetSeed(0);
  cuda_emulation::FailCallOf("ncclGetUniqueId", 1);
  EXPECT_THAT(std::string(NewNcclIdentifier().status().message()),
              testing::HasSubstr("ncclGetUniqueId: unhandled cuda"));
  cuda_emulation::SetSeed(0);
}

INSTANTIATE_TEST_SUITE_P(All, NcclErrors,
                         testing::Values(std::tuple(2, true), std::tuple(2, false), std::tuple(4, true)),
                         [](const auto& info) {
                           return absl::StrCat("On", std::get<0>(info.param), "Gpus",
                                               std::get<1>(info.param) ? "AsGraphs" : "");
                         });

}  // namespace
}  // namespace pipec
