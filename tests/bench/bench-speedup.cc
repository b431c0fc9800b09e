// Whether a pipeline is faster than no pipeline: preset gpt-6, two ranks with one thread each, M = 16,
// against two independent one-rank runs side by side. The fair share of a perfect pipeline is M / (M + 1) of
// their throughput; the figure is the ratio to that share. Pairs are taken A B A B, because a machine's speed
// drifts; the median and its interval are printed.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/bench/figures.h"
#include "tests/bench/run_program.h"

namespace pipec::bench {
namespace {

constexpr int kMicrobatches = 16;

double SamplesPerSecond(const std::string& plan, int steps) {
  const Outcome outcome = MustRun(
      {"piperun", plan, "--data=synthetic", "--steps=" + std::to_string(steps), "--threads=1", "--json"});
  return nlohmann::json::parse(outcome.out)["samples_per_second"];
}

double SideBySide(const std::string& plan, int steps) {
  double first = 0, second = 0;
  std::thread other([&] { second = SamplesPerSecond(plan, steps); });
  first = SamplesPerSecond(plan, steps);
  other.join();
  return first + second;
}

void Run(int pairs, int steps) {
  const ScratchFolder folder;
  const std::string model = folder / "gpt.onnx", pipeline = folder / "two.plan", single = folder / "one.plan";
  MustRun({"make-model", "gpt", "--preset=gpt-6", "-o", model});
  const std::string m = "--microbatches=" + std::to_string(kMicrobatches);
  MustRun({"pipec", model, "--stages=2", m, "--schedule=1f1b", "-o", pipeline});
  MustRun({"pipec", model, "--stages=1", m, "--schedule=1f1b", "-o", single});
  std::vector<double> ratios;
  for (int k = 0; k < pairs; ++k) {
    const double together = SamplesPerSecond(pipeline, steps);
    const double apart = SideBySide(single, steps);
    ratios.push_back(together / apart * (kMicrobatches + 1) / kMicrobatches);
    std::fprintf(stderr, "pair %d: %.3f against %.3f samples/s\n", k + 1, together, apart);
  }
  PrintRatios("speedup", ratios);
}

}  // namespace
}  // namespace pipec::bench

// bench-speedup [PAIRS [STEPS]]
int main(int argc, char** argv) {
  pipec::bench::Run(argc > 1 ? std::atoi(argv[1]) : 15, argc > 2 ? std::atoi(argv[2]) : 3);
}
