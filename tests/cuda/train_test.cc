// Whole plans on the CUDA device, over the emulation: what they learn is what the CPU learns, whatever the order in
// which streams and threads run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/cuda/plan_run.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

struct Net {
  const char *name, *model, *flags;
  double lr = 0.1;
};

class CudaTraining : public CudaPlans {};
// A net and the type that it computes in.
class CudaNets : public CudaPlans, public testing::WithParamInterface<std::tuple<Net, const char*>> {};

TEST_P(CudaNets, LearnWhatTheyLearnOnTheCpu) {
  const auto& [net, precision] = GetParam();
  MakeModel(net.model);
  const std::string plan = MakePlan(absl::StrCat("--stages=1 --device=h200 --precision=", precision, " ", net.flags));
  if (HasFatalFailure()) return;
  // Where numbers have 8 or 11 bits a sum in another order is now and then another number: fewer steps in which
  // that grows.
  const bool wide = precision == std::string("fp32");
  const TrainOptions options{.steps = wide ? 6 : 3, .lr = net.lr};
  // The weights of attention are of 16 bits too, where the CPU has float32.
  const double tolerance = wide ? 1e-5 : precision == std::string("fp16") ? 5e-4 : 2e-3;
  const Trained wanted = Train(plan, OnCpu(), options);
  for (uint64_t seed = 0; seed < (wide ? 2 : 1); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Trained got = TrainEmulated(plan, OnCuda(1), seed, options);
    EXPECT_EQ(got.skipped, wanted.skipped);
    ExpectNear(got, wanted, tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaNets,
    testing::Combine(
        testing::Values(
            Net{"mlp", "mlp --hidden=16 --inputs=12 --layers=3 --batch=4",
                "--microbatches=3 --optimizer=sgd"},
            Net{"mlp_adam", "mlp --hidden=16 --inputs=12 --layers=3 --batch=4",
                "--microbatches=3 --optimizer=adam"},
            Net{"cnn", "cnn --hidden=4 --image=3x8x8 --batch=2", "--microbatches=2 --optimizer=momentum"},
            // Its last normalizations see a few values a channel and turn rounding into much more at a larger rate.
            Net{"resnet", "resnet --layers=1 --hidden=2 --image=3x32x32 --batch=4",
                "--microbatches=2 --optimizer=sgd", 1e-3},
            // Heads of 8 elements, which cuDNN takes; those of the others have 4.
            Net{"gpt", "gpt --layers=1 --hidden=16 --heads=2 --sequence=8 --vocabulary=16 --batch=2",
                "--microbatches=2 --optimizer=sgd"},
            Net{"bert", "bert --layers=1 --hidden=8 --heads=2 --sequence=8 --vocabulary=16 --batch=2",
                "--microbatches=2 --optimizer=sgd"},
            Net{"llama", "llama --layers=1 --hidden=16 --heads=4 --sequence=8 --vocabulary=16 --batch=2",
                "--microbatches=2 --optimizer=sgd"},
            Net{"unet", "unet --layers=1 --hidden=4 --image=3x8x8 --classes=3 --batch=2",
                "--microbatches=2 --optimizer=sgd", 0.01},
            Net{"lstm", "lstm --layers=1 --hidden=8 --sequence=6 --vocabulary=11 --batch=2",
                "--microbatches=2 --optimizer=sgd"}),
        testing::Values("fp32", "bf16", "fp16")),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param).name, "_", std::get<1>(info.param));
    });

TEST_F(CudaTraining, AnErrorAtAnyCallForAConvolutionalNetEndsTheRunWithItsName) {
  MakeModel("cnn --hidden=2 --image=1x8x8 --batch=1");
  const std::string plan = MakePlan("--stages=1 --microbatches=1");
  if (HasFatalFailure()) return;
  const TrainOptions two_steps{.steps = 2};
  const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
  const Trained right = TrainEmulated(plan, OnCuda(1), 0, two_steps);
  ASSERT_TRUE(right.status.ok()) << right.status;
  const int64_t calls = cuda_emulation::CallCount(), stride = calls / 80 | 1;
  std::set<std::string> failed;
  for (int64_t k = 1; k <= calls; k += stride) {
    cuda_emulation::SetSeed(k);
    cuda_emulation::FailCall(k, cudaErrorNotSupported);
    const Trained run = Train(plan, OnCuda(1), two_steps);
    const std::vector<std::string> reports = cuda_emulation::TakeReports();
    ASSERT_TRUE(cuda_emulation::CountLiveObjects() == before) << "call " << k << ": " << run.status;
    ASSERT_FALSE(reports.empty()) << "call " << k;
    const std::string name = reports[0].substr(0, reports[0].find(':'));
    if (absl::StrContains(name, "cudnn")) failed.insert(name);
    if (absl::StrContains(name, "Destroy") || absl::StrContains(name, "Free")) continue;
    EXPECT_FALSE(run.status.ok()) << name << " failed at call " << k << ", and nobody noticed";
    EXPECT_THAT(std::string(run.status.message()),
                testing::ContainsRegex("rank 0.*(cudaErrorNotSupported|CUBLAS_STATUS_|CUDNN_STATUS_NOT_SUPPORTED)"))
        << name << " failed at call " << k;
  }
  cuda_emulation::SetSeed(0);
  EXPECT_GE(failed.size(), 8u);
}

}  // namespace
}  // namespace pipec
