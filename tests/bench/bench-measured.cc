// Measured over simulated step time on the CPU, 2 ranks of one thread each, so that both cores of a small machine
// are busy as they are in a pipeline: costs are profiled at M = 8, the plan is compiled with them, and run. Then
// what the same profile says of another M and of one rank, and, fitted, of microbatches twice as large: stage times
// and step times. Each pair profiles anew, as the machine's speed drifts. Without a profile, the error is printed
// too.
//
//   bench-measured [--models=NAME,...] [--pairs=N]      mlp, gpt-6, resnet18-64; the machine must be otherwise idle
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/data/npz.h"
#include "tests/bench/figures.h"
#include "tests/bench/run_program.h"
#include "tests/bench/traced_run.h"

namespace pipec::bench {
namespace {

using nlohmann::json;

constexpr int kProfiledMicrobatches = 8;

struct BenchModel {
  std::string name;
  std::vector<std::string> make_model;
  TensorType input;  // of a microbatch
  std::string input_name;
  int64_t classes = 0;
  Shape labels;
  int steps = 0;  // of a run; the first of them warm the machine up
};

std::vector<BenchModel> Models() {
  return {
      {"mlp",
       {"mlp", "--layers=16", "--inputs=512", "--hidden=512", "--batch=64"},
       {DType::kFloat32, {64, 512}},
       "x",
       10,
       {64},
       12},
      {"gpt-6", {"gpt", "--preset=gpt-6"}, {DType::kInt64, {1, 256}}, "input_ids", 256, {1, 256}, 5},
      {"resnet18-64", {"resnet", "--preset=resnet18-64"}, {DType::kFloat32, {8, 3, 64, 64}}, "x", 10, {8}, 5},
  };
}

// So many microbatches of random values or, if int64, of [0, bound).
HostArray Random(TensorType type, int64_t microbatches, int64_t bound) {
  type.shape[0] *= microbatches;
  auto bytes = std::make_shared<std::string>(type.bytes(), '\0');
  std::mt19937 random(7);
  for (int64_t k = 0; k < type.elements(); ++k) {
    if (type.dtype == DType::kInt64) {
      const int64_t value = random() % bound;
      std::memcpy(&(*bytes)[8 * k], &value, 8);
    } else {
      const float value = std::normal_distribution<float>()(random);
      std::memcpy(&(*bytes)[4 * k], &value, 4);
    }
  }
  return {type, *bytes, bytes};
}

struct PipelineShape {
  int ranks, microbatches;
  int scale = 1;  // samples of a microbatch over the model's

  std::string name() const {
    return absl::StrCat("p", ranks, "_m", microbatches, scale == 1 ? "" : absl::StrCat("_b", scale));
  }
};

// The largest share by which the median of a ratio misses 1.
struct WorstErrors {
  double step = 0, stage = 0;

  void Add(absl::string_view figure, const std::vector<double>& ratios) {
    double& worst = absl::StartsWith(figure, "step_") ? step : stage;
    worst = std::max(worst, std::abs(Median(ratios) - 1));
  }
  void Print(const std::string& name) const {
    std::printf("%sworst_stage_error %.3f ratio\n%sworst_step_error %.3f ratio\n", name.c_str(), stage,
                name.c_str(), step);
  }
};

using Ratios = std::map<std::string, std::vector<double>>;

// A plan and what its report says.
struct Planned {
  std::string plan;
  json report;
};

class Bench {
 public:
  explicit Bench(const BenchModel& model) : model_(model) {
    std::vector<std::string> words = {"make-model"};
    words.insert(words.end(), model.make_model.begin(), model.make_model.end());
    words.insert(words.end(), {"-o", folder_ / "model.onnx"});
    MustRun(words);
    constexpr int64_t kMicrobatches = 32;
    const NamedArrays arrays = {
        {model.input_name, Random(model.input, kMicrobatches, model.classes)},
        {"labels", Random({DType::kInt64, model.labels}, kMicrobatches, model.classes)}};
    if (const absl::Status status = WriteNpz(folder_ / "data.npz", arrays); !status.ok()) {
      std::fprintf(stderr, "bench-measured: %s\n", status.ToString().c_str());
      std::exit(1);
    }
  }

  void Run(int pairs) {
    const PipelineShape profiled{2, kProfiledMicrobatches};
    const std::vector<PipelineShape> shapes = {
        profiled, {2, 2 * kProfiledMicrobatches}, {1, kProfiledMicrobatches}, {2, kProfiledMicrobatches, 2}};
    Ratios measured, fitted, modelled;
    for (int pair = 0; pair < pairs; ++pair) {
      const Planned unprofiled = Compile(profiled, false);
      MustRun(Piperun(unprofiled, "profile"));
      Compare(Execute(unprofiled), unprofiled.report, profiled.name(), modelled);
      for (const PipelineShape& shape : shapes) {
        const Planned planned = Compile(shape, true);
        Compare(Execute(planned), planned.report, shape.name(), shape.scale == 1 ? measured : fitted);
      }
    }
    const std::string name = absl::StrReplaceAll(model_.name, {{"-", "_"}});
    for (const auto& [of, ratios] :
         {std::pair("unprofiled_", &modelled), std::pair("fitted_", &fitted), std::pair("", &measured)}) {
      WorstErrors worst;
      for (const auto& [figure, values] : *ratios) {
        PrintRatios(absl::StrCat(name, "_", of, figure), values);
        worst.Add(figure, values);
      }
      worst.Print(absl::StrCat(name, "_", of));
    }
    std::fflush(stdout);
  }

 private:
  // Measured over what the report says.
  static void Compare(const TracedRun& run, const json& report, const std::string& at, Ratios& ratios) {
    const double step = Median(run.steps) + Median(run.gaps);
    ratios[absl::StrCat("step_", at)].push_back(step / report["step_time_s"].get<double>());
    for (const json& row : report["stages"]) {
      const auto& [forward, backward] = run.stages.at(row["stage"]);
      ratios[absl::StrCat("stage", row["stage"].get<int>(), "_", at)].push_back(
          (forward + backward) / (row["forward_s"].get<double>() + row["backward_s"].get<double>()));
    }
  }

  Planned Compile(PipelineShape shape, bool with_profile) const {
    const std::string plan = folder_ / (with_profile ? "measured.plan" : "modelled.plan");
    std::vector<std::string> words = {
        "pipec",
        folder_ / "model.onnx",
        absl::StrCat("--stages=", shape.ranks),
        absl::StrCat("--microbatches=", shape.microbatches),
        absl::StrCat("--batch=", shape.microbatches * shape.scale * model_.input.shape[0]),
        "--json",
        "-o",
        plan};
    if (with_profile) words.push_back(absl::StrCat("--profile=", folder_ / "profile.json"));
    return {plan, json::parse(MustRun(words).out)};
  }

  // With what it measures written into a file of that name.
  std::vector<std::string> Piperun(const Planned& planned, const std::string& what) const {
    return {"piperun",
            planned.plan,
            absl::StrCat("--data=", folder_ / "data.npz"),
            absl::StrCat("--steps=", model_.steps),
            "--threads=1",
            absl::StrCat("--", what, "=", folder_ / absl::StrCat(what, ".json"))};
  }

  TracedRun Execute(const Planned& planned) const {
    MustRun(Piperun(planned, "trace"));
    return ReadTrace(folder_ / "trace.json");
  }

  const BenchModel model_;
  const ScratchFolder folder_;
};

int Main(int argc, char** argv) {
  std::vector<std::string> wanted = {"mlp", "gpt-6", "resnet18-64"};
  int pairs = 15;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    bool good = true;
    if (absl::ConsumePrefix(&word, "--models=")) {
      wanted = absl::StrSplit(word, ',');
    } else {
      good = absl::ConsumePrefix(&word, "--pairs=") && absl::SimpleAtoi(word, &pairs) && pairs > 0;
    }
    if (good) continue;
    std::fprintf(stderr, "bench-measured: '%s'; usage: bench-measured [--models=NAME,...] [--pairs=N]\n",
                 argv[i]);
    return 2;
  }
  for (const BenchModel& model : Models()) {
    if (std::find(wanted.begin(), wanted.end(), model.name) != wanted.end()) Bench(model).Run(pairs);
  }
  return 0;
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) { return pipec::bench::Main(argc, argv); }
