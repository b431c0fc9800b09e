// Whole runs of the hand-built linear plan: files in, files out.
#include "runtime/driver/run.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/data/npz.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/transport/local/local_transport.h"
#include "tests/unit/support/linear_plan.h"
#include "tests/unit/support/scratch.h"

namespace pipec {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LinearShape;

std::string Path(const std::string& name) { return testing::ScratchPath(name); }

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

HostArray Floats(const Shape& shape, const std::vector<float>& values) {
  auto bytes = std::make_shared<std::string>(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  return {{DType::kFloat32, shape}, *bytes, bytes};
}

// Targets are linear in x, so that the loss can fall to nothing.
void WriteData(const std::string& path, const LinearShape& shape, int samples, int bad_sample = -1) {
  std::vector<float> x(samples * shape.in), labels(samples * shape.out);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(static_cast<int>(i * 37 % 23) - 11);
  for (int s = 0; s < samples; ++s) {
    for (int o = 0; o < shape.out; ++o)
      labels[s * shape.out + o] = x[s * shape.in + o] - 0.5f * x[s * shape.in + 2];
  }
  if (bad_sample >= 0) x[bad_sample * shape.in] = std::numeric_limits<float>::quiet_NaN();
  const absl::Status status = WriteNpz(
      path, {{"x", Floats({samples, shape.in}, x)}, {"labels", Floats({samples, shape.out}, labels)}});
  ASSERT_TRUE(status.ok()) << status;
}

struct Recorder : RunObserver {
  void OnNote(absl::string_view line) override { notes += std::string(line) + "\n"; }
  void OnStep(const StepReport& report) override { steps.push_back(report); }
  void OnEvaluation(const EvaluationReport& report) override { evaluations.push_back(report); }
  void OnProgress(absl::string_view, int64_t, int64_t) override {}
  std::string notes;
  std::vector<StepReport> steps;
  std::vector<EvaluationReport> evaluations;
};

absl::StatusOr<RunResult> Train(const LinearShape& shape, const RunOptions& options, Recorder* recorder) {
  testing::WriteLinearPlan(Path("plan"), shape);
  LocalHub hub(shape.ranks);
  return RunPlan(
      Path("plan"), options, [](int) { return MakeCpuDevice(1); },
      [&](int rank, Device& device) { return hub.Connect(rank, device); }, *recorder);
}

RunOptions Options(const LinearShape& shape, int samples = 60) {
  WriteData(Path("train.npz"), shape, samples);
  RunOptions options;
  options.data = Path("train.npz");
  options.hyperparameters.lr.value = 0.1;
  return options;
}

TEST(RunPlan, MetricsAndExportAreBitIdenticalOnOneRankAndTwo) {
  std::vector<std::string> metrics, exports;
  for (int ranks : {1, 2}) {
    const LinearShape shape{.ranks = ranks};
    RunOptions options = Options(shape);
    options.epochs = 3;
    options.shuffle = true;
    options.metrics = Path("metrics.jsonl");
    options.export_directory = Path("export");
    Recorder recorder;
    const auto result = Train(shape, options, &recorder);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->steps, 15) << "60 samples, 12 a step, 3 epochs";
    EXPECT_LT(*result->last_loss, 0.8 * *result->first_loss);
    EXPECT_THAT(recorder.notes, HasSubstr("sgd: lr 0.1, weight decay 0"));
    metrics.push_back(Contents(options.metrics));
    exports.push_back(Contents(Path("export/model.safetensors")));
    EXPECT_EQ(Contents(Path("export/model.onnx")), "onnx");
  }
  EXPECT_EQ(metrics[0], metrics[1]);
  EXPECT_EQ(exports[0], exports[1]);
  EXPECT_THAT(
      metrics[0].substr(0, metrics[0].find('\n')),
      AllOf(HasSubstr("{\"step\": 1, \"loss\": "), HasSubstr("\"lr\": 0.1,"), HasSubstr("\"grad_norm\": ")));
  const auto file = SafetensorsFile::Open(Path("export/model.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->entries()[0].name, "W0");
  EXPECT_EQ(file->Find("W1")->type, (TensorType{DType::kFloat32, {4, 2}}));
  const std::vector<float> initial = testing::LinearParameters({});
  EXPECT_NE(std::string(file->Bytes(*file->Find("W0"))),
            std::string(reinterpret_cast<const char*>(initial.data()), file->Find("W0")->bytes));
}

// Eval-train-eval: 5 samples do not fill a batch of 12, whose microbatches are of 3.
TEST(RunPlan, EvaluationDoesNotChangeTheTraining) {
  const LinearShape shape{.ranks = 2};
  std::vector<std::string> metrics;
  for (bool evaluate : {false, true}) {
    RunOptions options = Options(shape);
    options.steps = 8;
    options.metrics = Path("metrics.jsonl");
    WriteData(Path("eval.npz"), shape, 17);
    if (evaluate) options.eval_data = Path("eval.npz");
    options.eval_every = 3;
    Recorder recorder;
    const auto result = Train(shape, options, &recorder);
    ASSERT_TRUE(result.ok()) << result.status();
    metrics.push_back(Contents(options.metrics));
    if (!evaluate) continue;
    ASSERT_EQ(recorder.evaluations.size(), 4u) << "before, after 3, 6 and 8";
    EXPECT_EQ(recorder.evaluations[0].samples, 17);
    EXPECT_LT(*recorder.evaluations[3].loss, *recorder.evaluations[0].loss);
  }
  EXPECT_EQ(metrics[0], metrics[1]);
}

TEST(RunPlan, ShuffleAndSeedChooseTheOrder) {
  const LinearShape shape{.ranks = 1};
  auto losses = [&](bool shuffle, uint64_t seed) {
    RunOptions options = Options(shape);
    options.shuffle = shuffle;
    options.seed = seed;
    Recorder recorder;
    EXPECT_TRUE(Train(shape, options, &recorder).ok());
    std::vector<double> values;
    for (const StepReport& report : recorder.steps) values.push_back(*report.loss);
    return values;
  };
  EXPECT_EQ(losses(true, 1), losses(true, 1));
  EXPECT_NE(losses(true, 1), losses(true, 2));
  EXPECT_NE(losses(true, 1), losses(false, 1));
  EXPECT_EQ(losses(false, 1), losses(false, 2));
}

// Sample 30 of 60 is in step 3, microbatch 2 of it.
TEST(RunPlan, ANaNIsReportedWithStepStageAndNodeAndNothingIsExported) {
  for (int ranks : {1, 2}) {
    const LinearShape shape{.ranks = ranks};
    RunOptions options = Options(shape);
    WriteData(Path("nan.npz"), shape, 60, 30);
    options.data = Path("nan.npz");
    options.export_directory = Path("nan_export");
    std::filesystem::remove_all(options.export_directory);
    Recorder recorder;
    const absl::Status status = Train(shape, options, &recorder).status();
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("step 3"), HasSubstr("the loss is nan"), HasSubstr("stage 0"),
                      HasSubstr("'h'"), HasSubstr("F of microbatch 2")));
    EXPECT_EQ(recorder.steps.size(), 2u);
    EXPECT_FALSE(std::filesystem::exists(options.export_directory));
  }
}

TEST(RunPlan, PerParameterRatesAndTheScheduleReachTheOptimizer) {
  const LinearShape shape{.ranks = 2};
  RunOptions options = Options(shape);
  options.steps = 4;
  options.hyperparameters.lr.by_regex = {{"^W0$", 0.0}};
  options.hyperparameters.schedule = LrSchedule::kLinear;
  options.export_directory = Path("rates_export");
  Recorder recorder;
  ASSERT_TRUE(Train(shape, options, &recorder).ok());
  std::vector<double> rates;
  for (const StepReport& report : recorder.steps) rates.push_back(report.lr);
  EXPECT_THAT(rates, ElementsAre(0.1, ::testing::DoubleEq(0.1 * 0.75), ::testing::DoubleEq(0.05),
                                 ::testing::DoubleEq(0.025)));
  const auto file = SafetensorsFile::Open(Path("rates_export/model.safetensors"));
  ASSERT_TRUE(file.ok());
  const std::vector<float> initial = testing::LinearParameters(shape);
  const std::string bytes(reinterpret_cast<const char*>(initial.data()), 4 * initial.size());
  EXPECT_EQ(std::string(file->Bytes(*file->Find("W0"))), bytes.substr(0, 80)) << "W0 has rate 0";
  EXPECT_NE(std::string(file->Bytes(*file->Find("W1"))), bytes.substr(80));
  options.hyperparameters.lr.by_regex = {{"nothing", 1.0}};
  EXPECT_THAT(std::string(Train(shape, options, &recorder).status().message()),
              HasSubstr("matches no trained parameter"));
}

TEST(RunPlan, TraceAndProfileAreWritten) {
  const LinearShape shape{.ranks = 2};
  RunOptions options = Options(shape);
  options.trace = Path("trace.json");
  options.profile = Path("profile.json");
  Recorder recorder;
  ASSERT_TRUE(Train(shape, options, &recorder).ok());
  const auto trace = nlohmann::json::parse(Contents(options.trace));
  std::map<std::pair<int, int>, double> end;  // of the last slice on (pid, tid)
  int slices = 0;
  auto events = trace["traceEvents"].get<std::vector<nlohmann::json>>();
  std::erase_if(events, [](const auto& e) { return e["ph"] != "X"; });
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a["ts"] < b["ts"]; });
  for (const auto& event : events) {
    const std::pair<int, int> line(event["pid"], event["tid"]);
    // Slices of one line must not overlap (0.001 us: their printed precision).
    EXPECT_GE(event["ts"].get<double>(), end[line] - 1e-3) << event;
    end[line] = event["ts"].get<double>() + event["dur"].get<double>();
    slices += event["name"] == "1F2";
  }
  EXPECT_EQ(slices, 5) << "one a step";
  EXPECT_EQ(end.size(), 6u) << "compute, send and receive of two ranks";
  const auto profile = nlohmann::json::parse(Contents(options.profile));
  EXPECT_EQ(profile["device"], "cpu");
  EXPECT_EQ(profile["nodes"][0]["name"], "h");
  EXPECT_EQ(profile["nodes"][0]["runs"], 20);
  EXPECT_EQ(profile["pipec_profile"], 2);
  EXPECT_EQ(profile["ranks"], 2);
  for (const auto& node : profile["nodes"]) {
    EXPECT_GT(node["seconds"].get<double>(), 0) << node;
    EXPECT_THAT(node["key"].get<std::string>(), HasSubstr(")->")) << node;
    EXPECT_THAT(node["key"].get<std::string>(), HasSubstr(node["op"].get<std::string>()));
  }
  EXPECT_GT(profile["action_seconds"].get<double>(), 0);
  for (const auto& message : profile["messages"]) {
    EXPECT_GT(message["bytes"].get<int>(), 0);
    EXPECT_GT(message["seconds"].get<double>(), 0);
  }
}

TEST(RunPlan, RefusesWhatCannotWork) {
  const LinearShape shape{.ranks = 2};
  Recorder recorder;
  auto message = [&](const RunOptions& options) {
    return std::string(Train(shape, options, &recorder).status().message());
  };
  RunOptions few = Options(shape, 11);
  EXPECT_THAT(message(few), HasSubstr("11 samples, one batch needs 12"));
  RunOptions infer = Options(shape);
  infer.outputs = Path("out.npz");
  EXPECT_THAT(message(infer), HasSubstr("--mode=infer"));
  RunOptions foreign = Options(shape);
  foreign.export_directory = Path("foreign");
  std::filesystem::create_directories(Path("foreign"));
  std::ofstream(Path("foreign/thesis.tex")) << "mine";
  EXPECT_THAT(message(foreign), HasSubstr("thesis.tex"));
  RunOptions nowhere = Options(shape);
  nowhere.metrics = Path("no/such/folder/m.jsonl");
  EXPECT_THAT(message(nowhere), HasSubstr("no/such/folder"));
  std::atomic<bool> stop = true;
  RunOptions stopped = Options(shape);
  stopped.stop = &stop;
  EXPECT_THAT(message(stopped), HasSubstr("interrupted after step 0"));
}

// One rank's file is damaged: its failure is the one that is reported, and nobody hangs.
TEST(RunPlan, ReportsTheRankThatFailed) {
  const LinearShape shape{.ranks = 2};
  const RunOptions options = Options(shape);
  testing::WriteLinearPlan(Path("plan"), shape);
  testing::WriteBytes(Path("plan") + "/rank-001.plan", "edited", 6);
  LocalHub hub(2);
  Recorder recorder;
  const absl::Status status =
      RunPlan(
          Path("plan"), options, [](int) { return MakeCpuDevice(1); },
          [&](int rank, Device& device) { return hub.Connect(rank, device); }, recorder)
          .status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank-001.plan"));
}

}  // namespace
}  // namespace pipec
