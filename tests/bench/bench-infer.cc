// Inference against onnxruntime, one thread each: light/resnet50 of ONNX's own suite, presets bert-6 and
// gpt-6, one sample at a time. The figures are our time over onnxruntime's, the median of pairs taken A B A
// B, because a machine's speed drifts, and its interval. Then, for every model, where the time of one run
// goes by op: ours as piperun --profile says, onnxruntime's as its profile says, under the names that its
// fused ops have.
//
//   bench-infer [--python=PATH] [--pairs=N] [--models=NAME,...]
//
// PATH: a Python that has onnxruntime and numpy; else what PIPEC_TORCH_PYTHON names, else python3.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/bench/comparison_flags.h"
#include "tests/bench/figures.h"
#include "tests/bench/run_program.h"

namespace pipec::bench {
namespace {

using nlohmann::json;

constexpr int kRuns = 16;  // of a measurement: what piperun takes from synthetic data

class Comparison {
 public:
  Comparison(std::string python, std::string name, std::string model, std::string plan)
      : python_(std::move(python)), name_(std::move(name)), model_(std::move(model)), plan_(std::move(plan)) {
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
    std::string figure = name_;
    std::replace(figure.begin(), figure.end(), '-', '_');
    std::printf("%s_milliseconds %.2f ms\n", figure.c_str(), Median(ours) * 1e3);
    std::printf("%s_onnxruntime_milliseconds %.2f ms\n", figure.c_str(), Median(theirs) * 1e3);
    PrintRatios(figure, ratios);
  }

  void PrintOps() const {
    const std::string profile = plan_ + ".profile.json";
    Ours({"--profile=" + profile});
    std::ifstream file(profile);
    OpSeconds ours;
    const json document = json::parse(file);
    for (const json& node : document["nodes"]) ours[node["op"]] += node["seconds"].get<double>();
    bench::PrintOps(name_ + ", ms a run",
                    {{"pipec", ours}, {"onnxruntime", Theirs({"--profile"})["ops"].get<OpSeconds>()}});
  }

 private:
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

int Main(int argc, char** argv) {
  const ComparisonFlags flags =
      ParseComparisonFlags(argc, argv, "resnet50,bert-6,gpt-6", "numpy, onnxruntime");
  const ScratchFolder folder;
  std::vector<Comparison> comparisons;
  for (const std::string& name : flags.models) {
    std::string model = PIPEC_ONNX_DATA "/light/light_resnet50.onnx";
    if (name != "resnet50") {
      model = folder / (name + ".onnx");
      MustRun({"make-model", name.substr(0, name.find('-')), "--preset=" + name, "-o", model});
    }
    comparisons.emplace_back(flags.python, name, model, folder / (name + ".plan"));
  }
  for (const Comparison& comparison : comparisons) comparison.PrintOps();
  for (const Comparison& comparison : comparisons) comparison.Measure(flags.pairs);
  return 0;
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) { return pipec::bench::Main(argc, argv); }
