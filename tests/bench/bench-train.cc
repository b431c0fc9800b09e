// Training against PyTorch, eager and through torch.compile, one thread each: presets gpt-6 and resnet18-64,
// AdamW, the same initial values, batch and microbatches, whose gradients PyTorch accumulates. The figures are
// our time of a step over PyTorch's, the median of pairs taken A B A B, because a machine's speed drifts, and
// its interval; on a busy machine the ratio of the processes' own processor time, whose median is printed too, says
// more. The losses of the first steps must agree: both sides do the same.
// Then, for every model, where the time of a step goes by kinds of ops, as torch.profiler and our profile say.
//
//   bench-train [--python=PATH] [--pairs=N] [--models=NAME,...]
//
// PATH: a Python that has torch, numpy, onnx and transformers; else what PIPEC_TORCH_PYTHON names, else python3.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/device/cpu/cpu_device.h"
#include "runtime/driver/run.h"
#include "runtime/transport/local/local_transport.h"
#include "tests/bench/comparison_flags.h"
#include "tests/bench/figures.h"
#include "tests/bench/op_kinds.h"
#include "tests/bench/run_program.h"

namespace pipec::bench {
namespace {

using nlohmann::json;

constexpr int kMicrobatches = 8;
constexpr double kLearningRate = 1e-4;  // PyTorch's side has the same
constexpr int kProfiledSteps = 8;       // so many that the first, which meets cold memory, does not count
constexpr int kEqualSteps = 3;          // whose losses must agree, within
constexpr double kEqualLoss = 1e-4;

// The sizes of PyTorch's networks, by preset.
const std::map<std::string, json> kSizes = {
    {"gpt-6", {{"layers", 6}, {"hidden", 384}, {"heads", 6}, {"sequence", 256}, {"vocabulary", 256}}},
    {"resnet18-64", {{"channels", 3}, {"hidden", 64}}}};

// After every step of ours PyTorch does the same step, so that steps and not runs are paired. The first step
// is not timed.
class Pairs : public RunObserver {
 public:
  Pairs(std::string name, Companion& pytorch, int samples, std::vector<std::string> sides)
      : name_(std::move(name)), pytorch_(pytorch), samples_(samples), sides_(std::move(sides)) {}

  void OnStep(const StepReport& report) override {
    const double ours = samples_ / report.samples_per_second;
    const double ours_processor = static_cast<double>(std::clock() - before_) / CLOCKS_PER_SEC;
    if (report.step > 1) seconds_["pipec"].push_back(ours);
    std::fprintf(stderr, "%s, step %d: pipec %.0f ms", name_.c_str(), static_cast<int>(report.step),
                 ours * 1e3);
    for (const std::string& side : sides_) {
      const json theirs = json::parse(pytorch_.Ask(side));
      const double seconds = theirs["seconds"], loss = theirs["loss"];
      std::fprintf(stderr, ", %s %.0f ms", side.c_str(), seconds * 1e3);
      if (report.step <= kEqualSteps && std::abs(loss / *report.loss - 1) > kEqualLoss) {
        std::fprintf(stderr, "\nbench-train: %s trains to a loss of %.6f, pipec to %.6f\n", side.c_str(),
                     loss, *report.loss);
        std::exit(1);
      }
      if (report.step == 1) continue;
      seconds_[side].push_back(seconds);
      processor_ratios_[side].push_back(ours_processor / theirs["processor_seconds"].get<double>());
    }
    std::fprintf(stderr, "\n");
    before_ = std::clock();
  }
  void OnNote(absl::string_view) override {}
  void OnEvaluation(const EvaluationReport&) override {}
  void OnProgress(absl::string_view, int64_t, int64_t) override {}

  void Print() const {
    std::string figure = "train_" + name_;
    std::replace(figure.begin(), figure.end(), '-', '_');
    const std::vector<double>& ours = seconds_.at("pipec");
    for (const auto& [side, seconds] : seconds_) {
      std::printf("%s_%s_milliseconds %.1f ms\n", figure.c_str(), side.c_str(), Median(seconds) * 1e3);
    }
    for (const std::string& side : sides_) {
      std::vector<double> ratios;
      for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / seconds_.at(side)[i]);
      std::printf("%s_processor_over_%s %.3f ratio\n", figure.c_str(), side.c_str(),
                  Median(processor_ratios_.at(side)));
      PrintRatios(figure + "_over_" + side, ratios);
    }
  }

 private:
  const std::string name_;
  Companion& pytorch_;
  const double samples_;
  const std::vector<std::string> sides_;
  std::map<std::string, std::vector<double>> seconds_;  // of steps, by side
  std::map<std::string, std::vector<double>> processor_ratios_;
  std::clock_t before_ = 0;  // processor time when our step began
};

void Train(const std::string& plan, RunOptions options, int64_t steps, RunObserver& observer) {
  options.steps = steps;
  options.hyperparameters.lr.value = kLearningRate;
  LocalHub hub(1);
  const auto result = RunPlan(
      plan, options, [](int) { return MakeCpuDevice(1); },
      [&](int rank, Device& device) { return hub.Connect(rank, device); }, observer);
  if (result.ok()) return;
  std::fprintf(stderr, "bench-train: %s\n", result.status().ToString().c_str());
  std::exit(1);
}

OpSeconds Profile(const std::string& plan, RunOptions options, RunObserver& observer) {
  options.profile = plan + ".profile.json";
  Train(plan, options, kProfiledSteps, observer);
  std::ifstream file(options.profile);
  const json document = json::parse(file);
  OpSeconds ops;
  for (const json& node : document["nodes"]) {
    ops[node["op"]] += node["seconds"].get<double>() * node["runs"].get<double>() / kProfiledSteps;
  }
  return ops;
}

class Silent : public RunObserver {
  void OnNote(absl::string_view) override {}
  void OnStep(const StepReport&) override {}
  void OnEvaluation(const EvaluationReport&) override {}
  void OnProgress(absl::string_view, int64_t, int64_t) override {}
};

// Rows of the table by the sides' own names: what takes a noticeable share of a step.
OpSeconds Noticeable(const OpSeconds& ops) {
  double total = 0;
  for (const auto& [op, seconds] : ops) total += seconds;
  OpSeconds rows;
  for (const auto& [op, seconds] : ops) {
    if (seconds >= 0.005 * total) rows[op] = seconds;
  }
  return rows;
}

void Compare(const ComparisonFlags& flags, const ScratchFolder& folder, const std::string& name) {
  const auto sizes = kSizes.find(name);
  if (sizes == kSizes.end()) {
    std::fprintf(stderr, "bench-train: no preset '%s' here; there are gpt-6 and resnet18-64\n", name.c_str());
    std::exit(2);
  }
  const std::string kind = name.substr(0, name.find_first_of("-1"));
  const std::string model = folder / (name + ".onnx"), plan = folder / (name + ".plan");
  const std::string microbatches = std::to_string(kMicrobatches);
  MustRun({"make-model", kind, "--preset=" + name, "-o", model});
  MustRun({"pipec", model, "--stages=1", "--microbatches=" + microbatches, "-o", plan});
  RunOptions options;
  options.data = folder / (name + ".npz");
  Companion pytorch({flags.python, PIPEC_SOURCE_DIR "/tests/bench/pytorch_train.py", kind,
                     sizes->second.dump(), model, microbatches, std::to_string(kLearningRate), options.data});
  const json ready = json::parse(pytorch.ReadLine());
  std::vector<std::string> sides = {"eager"};
  if (ready["compile"].is_null()) {
    sides.push_back("compiled");
  } else {
    std::printf("%s: torch.compile failed: %s\n", name.c_str(), ready["compile"].get<std::string>().c_str());
  }
  Pairs pairs(name, pytorch, ready["samples"], sides);
  Train(plan, options, flags.pairs + 1, pairs);
  Silent silent;
  std::vector<std::pair<std::string, OpSeconds>> ops = {{"pipec", Profile(plan, options, silent)}};
  for (const std::string& side : sides) {
    ops.emplace_back(side, json::parse(pytorch.Ask("profile " + side)).get<OpSeconds>());
  }
  std::vector<std::pair<std::string, OpSeconds>> kinds = ops;
  for (auto& side : kinds) side.second = ByKind(side.second);
  PrintOps(name + ", ms a step", kinds);
  for (auto& side : ops) side.second = Noticeable(side.second);
  PrintOps("by the sides' own names", ops);
  pairs.Print();
}

int Main(int argc, char** argv) {
  const ComparisonFlags flags =
      ParseComparisonFlags(argc, argv, "gpt-6,resnet18-64", "torch, numpy, onnx, transformers");
  const ScratchFolder folder;
  for (const std::string& name : flags.models) Compare(flags, folder, name);
  return 0;
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) { return pipec::bench::Main(argc, argv); }
