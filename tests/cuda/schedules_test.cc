// Several ranks on one emulated GPU and on several, every schedule, steps as graphs and piece by piece: the same numbers bit
// for bit, and the CPU's within what another order of sums makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda/plan_run.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

struct Case {
  const char* schedule;
  const char* flags;
};

class CudaSchedules : public CudaPlans, public testing::WithParamInterface<Case> {};

TEST_P(CudaSchedules, EqualTheCpu) {
  const auto& [schedule, flags] = GetParam();
  MakeModel("mlp --hidden=8 --inputs=6 --layers=8 --classes=4 --batch=2");
  const std::string plan = MakePlan(absl::StrCat("--schedule=", schedule, " ", flags));
  if (HasFatalFailure()) return;
  const Trained wanted = Train(plan, OnCpu());
  cuda_emulation::SetDevices(2);
  const Trained first = TrainEmulated(plan, OnCuda(1, /*graphs=*/false), 0);
  ExpectNear(first, wanted);
  for (uint64_t seed = 1; seed < 4; ++seed) {
    for (bool graphs : {false, true}) {
      for (int gpus : {1, 2}) {
        SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", gpus, " GPUs", graphs ? ", graphs" : ""));
        ExpectSame(TrainEmulated(plan, OnCuda(gpus, graphs), seed), first);
      }
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaSchedules,
                         testing::Values(Case{"gpipe", "--stages=4 --microbatches=8"},
                                         Case{"1f1b", "--stages=4 --microbatches=8"},
                                         Case{"zb-h1", "--stages=4 --microbatches=8"},
                                         Case{"pipedream", "--stages=4 --microbatches=1"}),
                         [](const auto& info) {
                           std::string name = info.param.schedule;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace pipec
