// Four ranks on a GPU each that talk by NCCL, every schedule, steps as graphs and piece by piece: bit for bit what
// the local transport gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cuda/nccl_run.h"
#include "tests/cuda/plan_run.h"
#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/nccl_control.h"

namespace pipec {
namespace {

constexpr int kRanks = 4;

struct Case {
  const char* schedule;
  const char* flags;
};

class NcclSchedules : public CudaPlans, public testing::WithParamInterface<Case> {};

TEST_P(NcclSchedules, EqualTheLocalTransport) {
  const auto& [schedule, flags] = GetParam();
  MakeModel("mlp --hidden=8 --inputs=6 --layers=8 --classes=4 --batch=2");
  const std::string plan = MakePlan(absl::StrCat("--schedule=", schedule, " --stages=4 ", flags));
  if (HasFatalFailure()) return;
  cuda_emulation::SetDevices(kRanks);
  const Trained wanted = TrainEmulated(plan, OnCuda(1, /*graphs=*/false), 0, {.steps = 3});
  uint64_t seed = 1;
  for (bool one_process : {true, false}) {
    for (bool graphs : {false, true}) {
      SCOPED_TRACE(absl::StrCat(one_process ? "one process" : "a process a rank", graphs ? ", graphs" : ""));
      const DevicesOf devices = one_process ? OnCuda(kRanks, graphs) : Alone(graphs);
      const MeetingOf meeting = ByNccl(one_process, /*one_stream=*/!one_process && !graphs);
      ExpectSame(TrainEmulated(plan, devices, seed++, {.steps = 3, .meeting = meeting}), wanted);
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(cuda_emulation::LiveCommunicators(), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, NcclSchedules,
                         testing::Values(Case{"gpipe", "--microbatches=6"}, Case{"1f1b", "--microbatches=6"},
                                         Case{"eager-1f1b", "--microbatches=6"},
                                         Case{"interleaved", "--microbatches=8 --virtual-stages=2"},
                                         Case{"looped-bfs", "--microbatches=6 --virtual-stages=2"},
                                         Case{"zb-h1", "--microbatches=6"}, Case{"zb-h2", "--microbatches=8"},
                                         Case{"zb-v", "--microbatches=8"}, Case{"v-half", "--microbatches=8"},
                                         Case{"v-min", "--microbatches=8"},
                                         Case{"dualpipe-v", "--microbatches=8"},
                                         Case{"pipedream", "--microbatches=1"},
                                         Case{"pipedream-2bw", "--microbatches=6"}),
                         [](const auto& info) {
                           std::string name = info.param.schedule;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

// Two replicas of two ranks: NCCL's sum of two is the local transport's, whatever order it has.
TEST_F(CudaPlans, ReplicasAddUpByNccl) {
  MakeModel("mlp --hidden=8 --inputs=6 --layers=4 --classes=4 --batch=2");
  uint64_t seed = 1;
  for (const char* schedule : {"1f1b", "zb-v"}) {
    const std::string plan =
        MakePlan(absl::StrCat("--schedule=", schedule, " --stages=2 --replicas=2 --microbatches=4"));
    if (HasFatalFailure()) return;
    cuda_emulation::SetDevices(kRanks);
    const TrainOptions local{.steps = 5, .clip_norm = 1};
    const Trained wanted = TrainEmulated(plan, OnCuda(1, /*graphs=*/false), 0, local);
    for (bool one_process : {true, false}) {
      SCOPED_TRACE(absl::StrCat(schedule, one_process ? ", one process" : ", a process a rank"));
      const bool graphs = seed % 2 == 0 || one_process;
      TrainOptions options = local;
      options.meeting = ByNccl(one_process, /*one_stream=*/!graphs);
      ExpectSame(TrainEmulated(plan, one_process ? OnCuda(kRanks, graphs) : Alone(graphs), seed, options),
                 wanted);
      seed += one_process ? 2 : 3;
    }
  }
  EXPECT_EQ(cuda_emulation::LiveCommunicators(), 0u);
}

// Of three NCCL may add in any order; all have the same sum, so that they go on together.
TEST_F(CudaPlans, ThreeReplicasStayOneModel) {
  MakeModel("mlp --hidden=8 --inputs=6 --layers=3 --classes=4 --batch=2");
  const std::string plan = MakePlan("--stages=1 --replicas=3 --microbatches=2 --precision=fp16");
  if (HasFatalFailure()) return;
  cuda_emulation::SetDevices(3);
  const Trained wanted = TrainEmulated(plan, OnCuda(1), 0, {.steps = 6});
  for (uint64_t seed = 0; seed < 4; ++seed) {
    ExpectNear(TrainEmulated(plan, OnCuda(3), seed, {.steps = 6, .meeting = ByNccl(/*one_process=*/true)}),
               wanted, 1e-3);
  }
}

// B24: both ranks block in a send and wait for the other to receive. Every send of the double waits for its
// receive, and here whatever a rank enqueues after it does, too.
class NcclBlockingSends : public CudaPlans, public testing::WithParamInterface<Case> {};

TEST_P(NcclBlockingSends, CompleteOnOneStream) {
  MakeModel("mlp --hidden=4 --inputs=4 --layers=12 --classes=3 --skips --batch=1");
  for (int ranks : {2, 3, 5}) {
    SCOPED_TRACE(ranks);
    const std::string plan = MakePlan(absl::StrCat("--schedule=", GetParam().schedule, " --stages=", ranks,
                                                   " ", GetParam().flags, " --microbatches=", 2 * ranks));
    if (HasFatalFailure()) return;
    cuda_emulation::SetDevices(ranks);
    const Trained wanted = TrainEmulated(plan, OnCuda(1, /*graphs=*/false), 0, {.steps = 2});
    ExpectSame(TrainEmulated(plan, Alone(/*graphs=*/false), ranks,
                             {.steps = 2, .meeting = ByNccl(/*one_process=*/false, /*one_stream=*/true)}),
               wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(All, NcclBlockingSends,
                         testing::Values(Case{"1f1b", ""}, Case{"interleaved", "--virtual-stages=2"},
                                         Case{"zb-v", ""}),
                         [](const auto& info) {
                           return info.param.schedule == std::string("zb-v") ? "zb_v" : info.param.schedule;
                         });

}  // namespace
}  // namespace pipec
