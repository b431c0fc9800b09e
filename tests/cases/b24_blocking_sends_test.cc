// B24: no schedule may depend on sends that buffer. With a transport whose send returns only once its receive
// is posted and messages of 64 MB, every schedule completes and computes what it computes otherwise.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/schedule.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/driver/run.h"
#include "runtime/transport/local/local_transport.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

class Silent : public RunObserver {
 public:
  void OnNote(absl::string_view) override {}
  void OnStep(const StepReport&) override {}
  void OnEvaluation(const EvaluationReport&) override {}
  void OnProgress(absl::string_view, int64_t, int64_t) override {}
};

class BlockingSends : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* bin = std::getenv("PIPEC_BIN");
    ASSERT_NE(bin, nullptr) << "PIPEC_BIN names the folder of the tools";
    bin_ = bin;
    folder_ = fs::path(::testing::TempDir()) /
              absl::StrCat("pipec-b24-", ::testing::UnitTest::GetInstance()->random_seed(), "-", getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Tool(const std::string& command) {
    ASSERT_EQ(std::system(absl::StrCat(bin_, "/", command, " >/dev/null 2>&1").c_str()), 0) << command;
  }

  // The last loss of `steps` steps.
  double Train(const std::string& plan, int ranks, int steps, bool rendezvous) {
    LocalHub hub(ranks, {.rendezvous = rendezvous, .rendezvous_limit = absl::Seconds(120)});
    RunOptions options;
    options.data = "synthetic";
    options.steps = steps;
    Silent silent;
    auto result = RunPlan(
        plan, options, [](int) { return MakeCpuDevice(1); },
        [&](int rank, Device& device) { return hub.Connect(rank, device); }, silent);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result->last_loss : 0;
  }

  void Check(const std::string& model, int ranks, int steps, const std::string& flags) {
    const std::string plan = folder_ / "m.plan";
    Tool(absl::StrCat("pipec ", model, " -o ", plan, " --stages=", ranks, " ", flags));
    if (HasFatalFailure()) return;
    const double buffered = Train(plan, ranks, steps, false);
    EXPECT_EQ(Train(plan, ranks, steps, true), buffered) << "P=" << ranks << " " << flags;
    EXPECT_GT(buffered, 0);
  }

  void Infer(const std::string& model, int ranks, const std::string& flags) {
    const std::string plan = folder_ / "m.plan";
    Tool(absl::StrCat("pipec ", model, " -o ", plan, " --mode=infer --stages=", ranks, " ", flags));
    if (HasFatalFailure()) return;
    const std::string outputs[] = {folder_ / "buffered.npz", folder_ / "blocking.npz"};
    for (bool rendezvous : {false, true}) {
      LocalHub hub(ranks, {.rendezvous = rendezvous, .rendezvous_limit = absl::Seconds(120)});
      RunOptions options;
      options.data = "synthetic";
      options.steps = 2;
      options.outputs = outputs[rendezvous];
      Silent silent;
      auto result = RunPlan(
          plan, options, [](int) { return MakeCpuDevice(1); },
          [&](int rank, Device& device) { return hub.Connect(rank, device); }, silent);
      EXPECT_TRUE(result.ok()) << result.status();
    }
    EXPECT_EQ(Contents(outputs[0]), Contents(outputs[1])) << "P=" << ranks << " " << flags;
    EXPECT_FALSE(Contents(outputs[0]).empty());
  }

  static std::string Contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string bin_;
  fs::path folder_;
};

TEST_F(BlockingSends, EveryScheduleAndStageCount) {
  const std::string model = folder_ / "m.onnx";
  Tool(absl::StrCat("make-model mlp --layers=12 --inputs=8 --hidden=8 --classes=4 --skips --batch=2 -o ",
                    model));
  for (const ScheduleInfo& info : AllSchedules()) {
    if (info.late_updates) continue;  // below
    for (int ranks = 2; ranks <= 5; ++ranks) {
      const std::string flags =
          absl::StrCat("--schedule=", std::string(info.name), " --microbatches=", 2 * ranks);
      if (info.forward_only) {
        Infer(model, ranks, flags);
      } else {
        Check(model, ranks, 2, flags);
      }
    }
  }
}

// As few microbatches as ranks, which leaves nothing but warm-up and cool-down.
TEST_F(BlockingSends, AsManyMicrobatchesAsRanks) {
  const std::string model = folder_ / "m.onnx";
  Tool(absl::StrCat("make-model mlp --layers=12 --inputs=8 --hidden=8 --classes=4 --batch=2 -o ", model));
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb-h2", "zb-v"}) {
    for (int ranks : {2, 3})
      Check(model, ranks, 2, absl::StrCat("--schedule=", schedule, " --microbatches=", ranks));
  }
}

TEST_F(BlockingSends, StepsThatOverlap) {
  const std::string model = folder_ / "m.onnx";
  Tool(absl::StrCat("make-model mlp --layers=12 --inputs=8 --hidden=8 --classes=4 --skips --batch=2 -o ",
                    model));
  for (int ranks = 2; ranks <= 5; ++ranks) {
    Check(model, ranks, 2 * ranks + 2, "--schedule=pipedream");
    for (int microbatches : {ranks, ranks + 1, 2 * ranks})
      Check(model, ranks, 6, absl::StrCat("--schedule=pipedream-2bw --microbatches=", microbatches));
  }
}

// A column times a row makes a value of 64 MB out of few samples and few parameters.
TEST_F(BlockingSends, MessagesOf64Megabytes) {
  std::string ones = "1";
  for (int k = 1; k < 4096; ++k) absl::StrAppend(&ones, ",", 1 + k % 3);
  std::string text =
      "<ir_version: 10, opset_import: [\"\" : 21]>\nwide (float[N,1,4096] x) => (float[N] y) <\n";
  for (int k = 0; k < 4; ++k) absl::StrAppend(&text, "float[4096,1] w", k, " = {", ones, "},\n");
  absl::StrAppend(&text, "int64[2] axes = {1,2}>\n{\nh0 = Mul(x, w0)\n");
  for (int k = 1; k < 4; ++k) absl::StrAppend(&text, "h", k, " = Mul(h", k - 1, ", w", k, ")\n");
  absl::StrAppend(&text, "y = ReduceMean<keepdims = 0>(h3, axes)\n}\n");
  const std::string model = folder_ / "m.onnxtxt";
  std::ofstream(model) << text;
  for (const char* schedule : {"interleaved", "zb-v"})
    Check(model, 2, 1,
          absl::StrCat("--batch=2 --microbatches=2 --loss=mse --cut=h0,h1,h2 --schedule=", schedule));
  Check(model, 2, 1, "--batch=2 --microbatches=2 --loss=mse --cut=h1 --schedule=1f1b");
  Check(model, 2, 3, "--batch=1 --loss=mse --cut=h1 --schedule=pipedream");
}

}  // namespace
}  // namespace pipec
