// Inference against onnxruntime, one thread each: light/resnet50 of ONNX's own suite, presets bert-6 and gpt-6, one sample at a time.
// The figures are our time over onnxruntime's, the median of pairs taken A B A B, because a machine's speed drifts, and its interval.
// Then, for every model, where the time of one run goes by op: ours as piperun --profile says, onnxruntime's as its profile says,
// under the names that its fused ops have.
//
//   bench-infer [--python=PATH] [--pairs=N] [--models=NAME,...]
//
// PATH: a Python that has onnxruntime and numpy; else what PIPEC_TORCH_PYTHON names, else python3.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/bench/run_program.h"

namespace pipec::bench {
namespace {

using nlohmann::json;

constexpr int kRuns = 16;  // of a measurement: what piperun takes from synthetic data

struct Arguments {
  std::string python = std::getenv("PIPEC_TORCH_PYTHON") ? std::getenv("PIPEC_TORCH_PYTHON") : "python3";
  std::string models = "resnet50,bert-6,gpt-6";
  int pairs = 15;
};

// By op: seconds of one run.
using OpSeconds = std::map<std::string, double>;

class Comparison {
 public:
  Comparison(const Arguments& arguments, std::string name, std::string model, std::string plan)
      : python_(arguments.python), name_(std::move(name)), model_(std::move(model)), plan_(std::move(plan)) {
    MustRun({"pipec", model_, "--mode=infer", "--stages=1", "--microbatches=1", "-o", plan_});
  }

  // `_` in the figures' names, where the model's has `-`.
  void Measure(int pairs) const {
    std::vector<double> ours, theirs, ratios;
    for (int k = 0; k < pairs; ++k) {
      ours.push_back(Ours({}));
      theirs.push_back(Theirs({})["seconds"]);
      ratios.push_back(ours.back() / theirs.back());
      std::fprintf(stderr, "%s, pair %d: %.2f against %.2f ms\n", name_.c_str(), k + 1, ours.back() * 1e3,
                   theirs.back() * 1e3);
    }
    std::sort(ratios.begin(), ratios.end());
    // The interval that holds the median with 95 %: ranks n/2 -+ sqrt(n) of the sorted values.
    const int n = static_cast<int>(ratios.size());
    const int reach = std::max(1, static_cast<int>(std::ceil(0.98 * std::sqrt(n))));
    std::string figure = name_;
    std::replace(figure.begin(), figure.end(), '-', '_');
    std::printf("%s_milliseconds %.2f ms\n", figure.c_str(), Median(ours) * 1e3);
    std::printf("%s_onnxruntime_milliseconds %.2f ms\n", figure.c_str(), Median(theirs) * 1e3);
    std::printf("%s_low %.3f ratio\n", figure.c_str(), ratios[std::max(0, n / 2 - reach)]);
    std::printf("%s_high %.3f ratio\n", figure.c_str(), ratios[std::min(n - 1, n / 2 + reach)]);
    std::printf("%s %.3f ratio\n", figure.c_str(), Median(ratios));
    std::fflush(stdout);
  }

  void PrintOps() const {
    const std::string profile = plan_ + ".profile.json";
    Ours({"--profile=" + profile});
    OpSeconds ours, theirs = Theirs({"--profile"})["ops"];
    std::ifstream file(profile);
    const json document = json::parse(file);
    for (const json& node : document["nodes"]) ours[node["op"]] += node["seconds"].get<double>();
    std::vector<std::pair<double, std::string>> rows;
    for (const auto& [op, seconds] : ours) rows.emplace_back(std::max(seconds, theirs[op]), op);
    for (const auto& [op, seconds] : theirs) {
      if (!ours.contains(op)) rows.emplace_back(seconds, op);
    }
    std::sort(rows.rbegin(), rows.rend());
    std::printf("%-28s %10s %14s\n", (name_ + ", ms a run").c_str(), "pipec", "onnxruntime");
    for (const auto& [seconds, op] : rows) {
      std::printf("%-28s %10s %14s\n", op.c_str(), Cell(ours, op).c_str(), Cell(theirs, op).c_str());
    }
    std::printf("\n");
  }

 private:
  static std::string Cell(const OpSeconds& seconds, const std::string& op) {
    const auto it = seconds.find(op);
    if (it == seconds.end() || it->second == 0) return "-";
    char text[32];
    std::snprintf(text, sizeof(text), "%.3f", it->second * 1e3);
    return text;
  }

  // Seconds of a run.
  double Ours(const std::vector<std::string>& flags) const {
    std::vector<std::string> words = {"piperun", plan_, "--data=synthetic", "--threads=1", "--json"};
    words.insert(words.end(), flags.begin(), flags.end());
    const json result = json::parse(MustRun(words).out);
    if (result["samples"] != kRuns) {
      std::fprintf(stderr, "bench-infer: %s was to take %d samples\n", name_.c_str(), kRuns);
      std::exit(1);
    }
    return result["seconds"].get<double>() / kRuns;
  }

  json Theirs(const std::vector<std::string>& flags) const {
    std::vector<std::string> words = {python_, PIPEC_SOURCE_DIR "/tests/bench/onnxruntime_infer.py", model_,
                                      std::to_string(kRuns)};
    words.insert(words.end(), flags.begin(), flags.end());
    return json::parse(MustRun(words).out);
  }

  const std::string python_, name_, model_, plan_;
};

// RunProgram looks for programs beside this one, not in PATH.
std::string Absolute(const std::string& program) {
  if (absl::StrContains(program, "/")) return program;
  std::string path = MustRun({"/bin/sh", "-c", "command -v -- '" + program + "' || echo /nowhere"}).out;
  return std::string(absl::StripSuffix(path, "\n"));
}

void CheckPython(const std::string& python) {
  if (RunProgram({python, "-c", "import numpy, onnxruntime"}).exit_code == 0) return;
  std::fprintf(
      stderr,
      "bench-infer: '%s' has no onnxruntime and numpy to compare with; make a Python that has them,\n"
      "  python3 -m venv DIR && DIR/bin/pip install onnxruntime numpy\n"
      "and say --python=DIR/bin/python\n",
      python.c_str());
  std::exit(1);
}

int Usage(const char* word) {
  std::fprintf(stderr,
               "bench-infer: '%s'; usage: bench-infer [--python=PATH] [--pairs=N] [--models=NAME,...]\n",
               word);
  return 2;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (absl::ConsumePrefix(&word, "--python=")) {
      arguments.python = std::string(word);
    } else if (absl::ConsumePrefix(&word, "--models=")) {
      arguments.models = std::string(word);
    } else if (!absl::ConsumePrefix(&word, "--pairs=") || (arguments.pairs = std::atoi(word.data())) < 1) {
      return Usage(argv[i]);
    }
  }
  arguments.python = Absolute(arguments.python);
  CheckPython(arguments.python);
  const ScratchFolder folder;
  std::vector<Comparison> comparisons;
  const std::vector<std::string> names = absl::StrSplit(arguments.models, ',');
  for (const std::string& name : names) {
    std::string model = PIPEC_ONNX_DATA "/light/light_resnet50.onnx";
    if (name != "resnet50") {
      model = folder / (name + ".onnx");
      MustRun({"make-model", name.substr(0, name.find('-')), "--preset=" + name, "-o", model});
    }
    comparisons.emplace_back(arguments, name, model, folder / (name + ".plan"));
  }
  for (const Comparison& comparison : comparisons) comparison.PrintOps();
  for (const Comparison& comparison : comparisons) comparison.Measure(arguments.pairs);
  return 0;
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) { return pipec::bench::Main(argc, argv); }
