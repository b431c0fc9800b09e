// Several ranks on one emulated GPU and on several, every schedule, steps as graphs and piece by piece: the same
// numbers bit for bit, those of one rank where the schedule is synchronous, and the CPU's within what another order
// of sums makes.
#include "tests/cuda/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/cuda/plan_run.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

// Seeds of a schedule's runs whose steps are graphs: PIPEC_SEEDS, or a few. A third as many runs go piece by piece.
int Seeds() {
  const char* const seeds = std::getenv("PIPEC_SEEDS");
  return seeds == nullptr ? 6 : std::atoi(seeds);
}

// Two steps piece by piece, two that are captured, one that is launched again.
const TrainOptions kFiveSteps{.steps = 5};

// Schedule and ranks.
class CudaSchedules : public CudaPlans, public testing::WithParamInterface<std::tuple<ScheduleCase, int>> {};

TEST_P(CudaSchedules, EqualTheCpuAndOneRank) {
  const auto& [schedule, ranks] = GetParam();
  // As many layers as the schedules have stages, and more.
  MakeModel("mlp --hidden=6 --inputs=5 --layers=9 --classes=4 --batch=2");
  Trained alone;
  if (schedule.synchronous) {
    const std::string plan = MakePlan(absl::StrCat("--stages=1 ", schedule.flags));
    if (HasFatalFailure()) return;
    alone = TrainEmulated(plan, OnCuda(1), 0, kFiveSteps);
  }
  const std::string plan =
      MakePlan(absl::StrCat("--schedule=", schedule.name, " --stages=", ranks, " ", schedule.flags));
  if (HasFatalFailure()) return;
  const Trained wanted = Train(plan, OnCpu(), kFiveSteps);
  cuda_emulation::SetDevices(2);
  Trained first;
  for (int seed = 0, with_graphs = 0; with_graphs < Seeds(); ++seed) {
    const bool graphs = seed % 4 != 0;
    with_graphs += graphs;
    const int gpus = seed % 8 < 4 ? 1 : 2;
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", gpus, " GPUs", graphs ? ", graphs" : ""));
    const Trained got = TrainEmulated(plan, OnCuda(gpus, graphs), seed, kFiveSteps);
    if (seed == 0) {
      ExpectNear(got, wanted);
      first = schedule.synchronous ? alone : got;
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

// A parameter that two ranks own, masks that are drawn, a norm over all ranks, 16 bits: still the numbers of one rank.
TEST_F(CudaPlans, RanksChangeNoNumberOfALanguageModel) {
  const TrainOptions options{.steps = 3, .clip_norm = 1};
  cuda_emulation::SetDevices(2);
  MakeModel("gpt --layers=2 --hidden=8 --heads=2 --sequence=4 --vocabulary=12 --dropout=0.2 --batch=1");
  for (const char* precision : {"fp32", "bf16"}) {
    const auto plan = [&](const char* schedule, int ranks) {
      return MakePlan(absl::StrCat("--device=h200 --microbatches=2 --precision=", precision,
                                   " --schedule=", schedule, " --stages=", ranks));
    };
    const Trained alone = TrainEmulated(plan("1f1b", 1), OnCuda(1), 0, options);
    EXPECT_EQ(std::set<double>(alone.losses.begin(), alone.losses.end()).size(), 3u);
    uint64_t seed = 0;
    for (const auto& [schedule, ranks] : {std::pair("1f1b", 2), {"zb-h1", 4}, {"zb-v", 2}}) {
      SCOPED_TRACE(absl::StrCat(precision, ", ", schedule, " on ", ranks));
      ExpectSame(TrainEmulated(plan(schedule, ranks), OnCuda(1 + seed % 2), seed, options), alone);
      ++seed;
    }
  }
}

// Heads of 8 elements, whose attention is cuDNN's; forward once or again.
TEST_F(CudaPlans, RanksAndRecomputeChangeNoNumberOfAttention) {
  const TrainOptions options{.steps = 5};
  cuda_emulation::SetDevices(2);
  MakeModel("gpt --layers=2 --hidden=16 --heads=2 --sequence=4 --vocabulary=12 --batch=1");
  const auto plan = [&](const std::string& flags) {
    return MakePlan(absl::StrCat("--device=h200 --microbatches=2 --precision=bf16 ", flags));
  };
  const Trained alone = TrainEmulated(plan("--stages=1 --recompute=none"), OnCuda(1), 0, options);
  uint64_t seed = 0;
  for (const char* flags :
       {"--stages=1 --recompute=all", "--stages=2 --recompute=all", "--stages=2 --schedule=zb-v"}) {
    SCOPED_TRACE(flags);
    ExpectSame(TrainEmulated(plan(flags), OnCuda(1 + seed % 2), seed, options), alone);
    ++seed;
  }
}

// Blocks whose Gelu hands its gradient on within a product, cut between their products too.
TEST_F(CudaPlans, CutsChangeNoNumberOfGelusGradient) {
  std::string parameters, nodes, x = "x";
  std::mt19937_64 random(1);
  const auto parameter = [&](const std::string& name, int rows, int columns) {
    absl::StrAppend(&parameters, parameters.empty() ? "" : ", ", "float[",
                    rows > 0 ? absl::StrCat(rows, ",") : "", columns, "] ", name, " = {");
    for (int i = 0; i < std::max(rows, 1) * columns; ++i)
      absl::StrAppend(&parameters, i > 0 ? "," : "",
                      std::uniform_real_distribution<float>(-0.5, 0.5)(random));
    absl::StrAppend(&parameters, "}");
  };
  for (const char* k : {"0", "1"}) {
    const std::string y = *k == '1' ? "y" : "x1";
    parameter(absl::StrCat("w", k), 4, 16), parameter(absl::StrCat("b", k), 0, 16);
    parameter(absl::StrCat("v", k), 16, 4);
    absl::StrAppend(&nodes, "m", k, " = MatMul(", x, ", w", k, ") p", k, " = Add(m", k, ", b", k, ") h", k,
                    " = Gelu<approximate = \"tanh\">(p", k, ") n", k, " = MatMul(h", k, ", v", k, ") ", y,
                    " = Add(", x, ", n", k, ")\n");
    x = y;
  }
  WriteModel(
      absl::StrCat("<ir_version: 10, opset_import: [\"\" : 21]>\nblocks (float[2,4] x) => (float[2,4] y)\n<",
                   parameters, ">\n{\n", nodes, "}\n"));
  const TrainOptions options{.steps = 3};
  cuda_emulation::SetDevices(2);
  for (const char* precision : {"fp32", "bf16"}) {
    const auto plan = [&](const std::string& flags) {
      return MakePlan(absl::StrCat("--microbatches=4 --precision=", precision, " ", flags));
    };
    const std::string one = plan("--stages=1");
    const Trained alone = TrainEmulated(one, OnCuda(1), 0, options);
    ExpectNear(alone, Train(one, OnCpu(), options), *precision == 'f' ? 1e-5 : 0.03);
    uint64_t seed = 0;
    for (const char* flags :
         {"--stages=2 --cut=h0", "--stages=3 --cut=h0,h1 --schedule=zb-h1", "--stages=2 --recompute=all"}) {
      SCOPED_TRACE(absl::StrCat(precision, ", ", flags));
      ExpectSame(TrainEmulated(plan(flags), OnCuda(1 + seed % 2), seed, options), alone);
      ++seed;
    }
  }
}

}  // namespace
}  // namespace pipec
