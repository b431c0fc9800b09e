// How long pipec takes, and how much memory: preset gpt-3 without weights, 8 ranks x 4 stages, M = 13,
// interleaved, training; how both grow with the number of layers; and the most layers on 64 ranks.
#include <algorithm>
#include <cstdio>
#include <map>

#include "tests/bench/run_program.h"

namespace pipec::bench {
namespace {

constexpr int kRepeats = 5;

const std::vector<std::string> kInterleaved = {"--stages=8", "--virtual-stages=4", "--microbatches=13",
                                               "--schedule=interleaved"};

Outcome Compile(const std::string& model, const std::vector<std::string>& pipeline) {
  std::vector<std::string> command = {"pipec", model, "--device=h200", "--memory=8TB", "--dry-run", "--json"};
  command.insert(command.end(), pipeline.begin(), pipeline.end());
  Outcome best;
  for (int k = 0; k < kRepeats; ++k) {
    Outcome outcome = MustRun(command);
    if (k == 0) best = outcome;
    best.seconds = std::min(best.seconds, outcome.seconds);
    best.cpu_seconds = std::min(best.cpu_seconds, outcome.cpu_seconds);
  }
  return best;
}

void Run() {
  const ScratchFolder folder;
  std::map<int, Outcome> by_layers;
  for (int layers : {24, 96, 384}) {
    const std::string model = folder / "gpt.onnx";
    MustRun({"make-model", "gpt", "--preset=gpt-3", "--layers=" + std::to_string(layers), "--no-weights",
             "-o", model});
    by_layers[layers] = Compile(model, kInterleaved);
    std::printf("compile_seconds_%d_layers %.3f s\n", layers, by_layers[layers].seconds);
    std::printf("compile_peak_memory_%d_layers %.1f MB\n", layers, by_layers[layers].peak_bytes * 1e-6);
    if (layers == 384) std::printf("compile_seconds_64_ranks %.3f s\n", Compile(model, {"--stages=64"}).seconds);
  }
  // Worst ratio of CPU time a layer, a size over the one before: above 1 the time grows faster than the
  // model.
  const auto growth = [&](int few, int many) {
    return by_layers[many].cpu_seconds / by_layers[few].cpu_seconds * few / many;
  };
  std::printf("compile_growth %.3f ratio\n", std::max(growth(24, 96), growth(96, 384)));
  std::printf("compile_peak_memory %.1f MB\n", by_layers[96].peak_bytes * 1e-6);
  std::printf("compile_seconds %.3f s\n", by_layers[96].seconds);
}

}  // namespace
}  // namespace pipec::bench

int main() { pipec::bench::Run(); }
