// Replicas on emulated GPUs, by the local transport: several on one GPU and one on each, steps as graphs and piece by
// piece, for many orders in which streams run. The same bits as ranks of a replica on one GPU, and the CPU's numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cuda/plan_run.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

TEST_F(CudaPlans, ReplicasEqualTheCpuAndEachOther) {
  MakeModel("mlp --hidden=8 --inputs=6 --layers=4 --classes=4 --batch=2");
  cuda_emulation::SetDevices(4);
  const TrainOptions options{.steps = 5, .clip_norm = 1, .eval_every = 3};
  const auto plan = [&](const char* schedule, int ranks) {
    return MakePlan(absl::StrCat("--microbatches=4 --replicas=2 --schedule=", schedule, " --stages=", ranks));
  };
  const std::string alone = plan("1f1b", 1);
  const Trained cpu = Train(alone, OnCpu(), options), one = TrainEmulated(alone, OnCuda(1), 0, options);
  ExpectNear(one, cpu);
  struct Case {
    const char* schedule;
    int gpus;
    bool graphs;
  };
  uint64_t seed = 1;
  for (const auto& [schedule, gpus, graphs] :
       {Case{"1f1b", 1, true}, Case{"1f1b", 4, true}, Case{"interleaved", 2, true}, Case{"zb-v", 4, false}}) {
    SCOPED_TRACE(absl::StrCat(schedule, ", ", gpus, " GPUs", graphs ? ", graphs" : ""));
    ExpectSame(TrainEmulated(plan(schedule, 2), OnCuda(gpus, graphs), seed++, options), one);
    if (HasFailure()) return;
  }
}

// Masks are those of the sample in the whole batch, and the owners of a shared parameter have the sum of all replicas.
TEST_F(CudaPlans, ReplicasOfALanguageModel) {
  MakeModel("gpt --layers=2 --hidden=8 --heads=2 --sequence=4 --vocabulary=12 --dropout=0.2 --batch=1");
  cuda_emulation::SetDevices(2);
  const std::string microbatches = MakePlan("--stages=1 --microbatches=2 --optimizer=sgd");
  const Trained two = TrainEmulated(microbatches, OnCuda(1), 0, {.steps = 4});
  const std::string replicas = MakePlan("--stages=2 --replicas=2 --microbatches=1 --optimizer=sgd");
  ExpectNear(TrainEmulated(replicas, OnCuda(2), 1, {.steps = 4}), two);
}

// An update that overflows on one replica happens on none, as graphs as well: the scale falls on all.
TEST_F(CudaPlans, ReplicasSkipTogether) {
  MakeModel("mlp --hidden=8 --inputs=6 --layers=3 --classes=4 --batch=2");
  cuda_emulation::SetDevices(2);
  const std::string plan = MakePlan("--stages=1 --replicas=2 --microbatches=1 --precision=fp16");
  const TrainOptions options{.steps = 8, .lr = 1e30};
  const Trained cpu = Train(plan, OnCpu(), options);
  EXPECT_FALSE(cpu.skipped.empty());
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const Trained got = TrainEmulated(plan, OnCuda(2), seed, options);
    EXPECT_EQ(got.status.ok(), cpu.status.ok()) << got.status;
    EXPECT_EQ(got.skipped, cpu.skipped);
  }
}

}  // namespace
}  // namespace pipec
