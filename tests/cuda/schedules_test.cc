// Several ranks on one emulated GPU and on several, every schedule, steps as graphs and piece by piece: the same numbers bit
// for bit, and the CPU's within what another order of sums makes.
#include "tests/cuda/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/cuda/plan_run.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

// Runs of a schedule, each with a seed of its own: PIPEC_SEEDS, or as many as make 208 with all schedules and both numbers
// of ranks.
int Seeds() {
  const char* const seeds = std::getenv("PIPEC_SEEDS");
  return seeds == nullptr ? 8 : std::atoi(seeds);
}

// Schedule and ranks.
class CudaSchedules : public CudaPlans, public testing::WithParamInterface<std::tuple<ScheduleCase, int>> {};

TEST_P(CudaSchedules, EqualTheCpu) {
  const auto& [schedule, ranks] = GetParam();
  // As many layers as the schedules have stages, and more.
  MakeModel("mlp --hidden=6 --inputs=5 --layers=9 --classes=4 --batch=2");
  const std::string plan =
      MakePlan(absl::StrCat("--schedule=", schedule.name, " --stages=", ranks, " ", schedule.flags));
  if (HasFatalFailure()) return;
  // Two steps piece by piece, two that are captured, one that is launched again.
  const TrainOptions options{.steps = 5};
  const Trained wanted = Train(plan, OnCpu(), options);
  cuda_emulation::SetDevices(2);
  Trained first;
  for (int seed = 0; seed < Seeds(); ++seed) {
    const bool graphs = seed % 2 == 1;
    const int gpus = seed % 4 < 2 ? 1 : 2;
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", gpus, " GPUs", graphs ? ", graphs" : ""));
    const Trained got = TrainEmulated(plan, OnCuda(gpus, graphs), seed, options);
    if (seed == 0) {
      ExpectNear(got, wanted);
      first = got;
    }
    ExpectSame(got, first);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaSchedules,
                         testing::Combine(testing::ValuesIn(kSchedules), testing::Values(2, 4)),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param).name;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return absl::StrCat(name, "_on_", std::get<1>(info.param));
                         });

}  // namespace
}  // namespace pipec
