// What a trainer on GPUs could get wrong without anybody noticing: an event that a stream does not wait for, an
// error that CUDA returns at some call. Both are tried at one place after the other, on one GPU and two, with and
// without graphs. PIPEC_ALL_PLACES=1 tries every one; otherwise some, spread over the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/cuda/plan_run.h"
#include "tests/cuda/schedules.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

// GPUs, and whether steps become graphs.
class CudaMutants : public CudaPlans, public testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  void SetUp() override {
    CudaPlans::SetUp();
    cuda_emulation::SetDevices(2);
    MakeModel(kModel);
    plan_ = MakePlan("--stages=3 --microbatches=4");
  }

  DevicesOf devices() const { return OnCuda(std::get<0>(GetParam()), std::get<1>(GetParam())); }
  // From one place to the next.
  int64_t Stride(int64_t places, int64_t tried) const {
    return std::getenv("PIPEC_ALL_PLACES") != nullptr ? 1 : std::max<int64_t>(1, places / tried);
  }

  static constexpr const char* kModel = "mlp --hidden=8 --inputs=6 --layers=3 --classes=4 --batch=2";
  std::string plan_;
  // Two steps piece by piece, two that are captured, two that are launched again.
  const TrainOptions train_{.steps = 6, .timeout = absl::Seconds(20)};
};

// Every place in the code where a stream waits for an event, at every schedule's plan. A message over several stages is
// there early: at the end of an asynchronous run the round that would have begun the next one must wait for it.
TEST_P(CudaMutants, AWaitThatIsLeftOutIsCaught) {
  int tried = 0, caught = 0;
  std::vector<ScheduleCase> schedules(std::begin(kSchedules), std::end(kSchedules));
  schedules.push_back({"1f1b", "--microbatches=2 --replicas=2", true});
  for (const ScheduleCase& schedule : schedules) {
    if (!schedule.synchronous) MakeModel("mlp --hidden=4 --inputs=4 --layers=12 --classes=3 --skips --batch=1");
    const std::string plan = MakePlan(absl::StrCat("--schedule=", schedule.name, " ", schedule.flags,
                                                   schedule.synchronous ? " --stages=2" : " --stages=4"));
    if (!schedule.synchronous) MakeModel(kModel);
    const Trained right = TrainEmulated(plan, devices(), 0, train_);
    ASSERT_TRUE(right.status.ok()) << schedule.name << ": " << right.status;
    const std::vector<uint64_t> sites = cuda_emulation::WaitSites();
    EXPECT_GE(sites.size(), 6u);
    for (size_t k = 0; k < sites.size(); ++k) {
      ++tried;
      bool found = false;
      for (size_t order = 0; order < 3 && !found; ++order) {  // which works overtake each other is drawn
        cuda_emulation::SetSeed(k + order * sites.size());
        cuda_emulation::IgnoreWaitsAt(sites[k]);
        const Trained mutant = Train(plan, devices(), train_);
        found = !cuda_emulation::TakeReports().empty() || !mutant.status.ok() || mutant.losses != right.losses ||
                mutant.parameters != right.parameters;
      }
      caught += found;
      if (!found) std::printf("missed: %s, %zu of %zu\n", schedule.name, k, sites.size());
    }
  }
  cuda_emulation::SetSeed(0);
  std::printf("%d of %d mutants caught\n", caught, tried);
  EXPECT_GE(caught, 0.95 * tried);
}

TEST_P(CudaMutants, AnErrorAtAnyCallEndsTheRunWithItsName) {
  const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
  const Trained right = TrainEmulated(plan_, devices(), 0, train_);
  ASSERT_TRUE(right.status.ok()) << right.status;
  const int64_t calls = cuda_emulation::CallCount(), stride = Stride(calls, 60);
  std::set<std::string> failed;
  for (int64_t k = 1; k <= calls; k += stride) {
    cuda_emulation::SetSeed(k);
    cuda_emulation::FailCall(k, cudaErrorNotSupported);
    const Trained run = Train(plan_, devices(), train_);
    const std::vector<std::string> reports = cuda_emulation::TakeReports();
    ASSERT_TRUE(cuda_emulation::CountLiveObjects() == before) << "call " << k << ": " << run.status;
    // Threads make calls in another order each time: there may have been fewer.
    if (reports.empty()) continue;
    const std::string name = reports[0].substr(0, reports[0].find(':'));
    failed.insert(name);
    const bool gives_back = absl::StrContains(name, "Destroy") || absl::StrContains(name, "Free");
    if (gives_back) continue;
    EXPECT_FALSE(run.status.ok()) << name << " failed at call " << k << ", and nobody noticed";
    EXPECT_THAT(std::string(run.status.message()),
                testing::ContainsRegex("rank [0-9].*(cudaErrorNotSupported|CUBLAS_STATUS_)"))
        << name << " failed at call " << k;
  }
  cuda_emulation::SetSeed(0);
  EXPECT_GE(failed.size(), 8u);
}

INSTANTIATE_TEST_SUITE_P(All, CudaMutants, testing::Values(std::tuple(1, true), std::tuple(2, false)),
                         [](const auto& info) {
                           return absl::StrCat("On", std::get<0>(info.param), "Gpus",
                                               std::get<1>(info.param) ? "AsGraphs" : "");
                         });

}  // namespace
}  // namespace pipec
