// Whole plans on the CUDA device, over the emulation: what they learn is what the CPU learns, whatever the order in which
// streams and threads run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda/plan_run.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

class CudaTraining : public CudaPlans {};

TEST_F(CudaTraining, LearnsWhatItLearnsOnTheCpu) {
  struct Case {
    const char *model, *flags;
  };
  for (const Case& each :
       {Case{"mlp --hidden=16 --inputs=12 --layers=3 --batch=4", "--microbatches=3 --optimizer=sgd"},
        Case{"mlp --hidden=16 --inputs=12 --layers=3 --batch=4", "--microbatches=3 --optimizer=adam"},
        Case{"cnn --hidden=4 --image=3x8x8 --batch=2", "--microbatches=2 --optimizer=momentum"}}) {
    MakeModel(each.model);
    const std::string plan = MakePlan(absl::StrCat("--stages=1 ", each.flags));
    if (HasFatalFailure()) return;
    const Trained wanted = Train(plan, OnCpu());
    for (uint64_t seed = 0; seed < 5; ++seed) {
      SCOPED_TRACE(absl::StrCat(each.model, " ", each.flags, ", seed ", seed));
      const Trained got = TrainEmulated(plan, OnCuda(1), seed);
      ExpectNear(got, wanted);
    }
  }
}

}  // namespace
}  // namespace pipec
