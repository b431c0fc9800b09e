// Whole plans on the CUDA device, over the emulation: what they learn is what the CPU learns, whatever the order in which
// streams and threads run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/driver/run.h"
#include "runtime/transport/local/local_transport.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

class Losses : public RunObserver {
 public:
  void OnNote(absl::string_view) override {}
  void OnStep(const StepReport& report) override { values.push_back(report.loss); }
  void OnEvaluation(const EvaluationReport&) override {}
  void OnProgress(absl::string_view, int64_t, int64_t) override {}

  std::vector<double> values;
};

class CudaTraining : public testing::Test {
 protected:
  void SetUp() override {
    const char* bin = std::getenv("PIPEC_BIN");
    ASSERT_NE(bin, nullptr) << "PIPEC_BIN names the folder of the tools";
    bin_ = bin;
    folder_ = fs::path(testing::TempDir()) / absl::StrCat("pipec-cuda-training-", getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Tool(const std::string& command) {
    ASSERT_EQ(std::system(absl::StrCat(bin_, "/", command, " >/dev/null 2>&1").c_str()), 0) << command;
  }

  // The losses of a few steps.
  std::vector<double> Train(const std::string& plan, const MakeDevice& make_device) {
    LocalHub hub(1, {});
    RunOptions options;
    options.data = "synthetic";
    options.steps = 6;
    Losses losses;
    const auto result = RunPlan(
        plan, options, make_device, [&](int rank, Device& device) { return hub.Connect(rank, device); }, losses);
    EXPECT_TRUE(result.ok()) << result.status();
    return losses.values;
  }

  void Check(const std::string& flags) {
    const std::string plan = folder_ / "m.plan";
    Tool(absl::StrCat("pipec ", (folder_ / "m.onnx").string(), " -o ", plan, " --stages=1 ", flags));
    if (HasFatalFailure()) return;
    const std::vector<double> wanted = Train(plan, [](int) { return MakeCpuDevice(1); });
    ASSERT_EQ(wanted.size(), 6u);
    for (uint64_t seed = 0; seed < 5; ++seed) {
      SCOPED_TRACE(absl::StrCat(flags, ", seed ", seed));
      cuda_emulation::SetSeed(seed);
      const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
      const std::vector<double> got = Train(plan, [](int) { return MakeCudaDevice(0); });
      EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
      EXPECT_THAT(got, testing::Pointwise(testing::DoubleNear(1e-5), wanted));
      EXPECT_TRUE(cuda_emulation::CountLiveObjects() == before) << "something was not given back";
    }
  }

  std::string bin_;
  fs::path folder_;
};

TEST_F(CudaTraining, AnMlpLearnsWhatItLearnsOnTheCpu) {
  Tool(absl::StrCat("make-model mlp -o ", (folder_ / "m.onnx").string(),
                    " --hidden=16 --inputs=12 --layers=3 --batch=4"));
  if (HasFatalFailure()) return;
  for (const char* optimizer : {"sgd", "adam"})
    Check(absl::StrCat("--microbatches=3 --optimizer=", optimizer));
}

}  // namespace
}  // namespace pipec
