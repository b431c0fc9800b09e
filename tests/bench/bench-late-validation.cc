// What it saves to update ahead of the norms and to validate in the next step: the time from step to step on device
// replay, where kernels take their modelled time and the executor and the transport are real, with and without,
// taken by turns.
//
//   bench-late-validation [--ranks=8]
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/bench/figures.h"
#include "tests/bench/run_program.h"
#include "tests/bench/traced_run.h"

namespace pipec::bench {
namespace {

constexpr int kPairs = 15, kSteps = 6;

struct Plan {
  std::string folder;
  double simulated = 0;  // seconds from step to step
};

int Main(int argc, char** argv) {
  int P = 8;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (absl::ConsumePrefix(&word, "--ranks=") && absl::SimpleAtoi(word, &P) && P > 1) continue;
    std::fprintf(stderr, "bench-late-validation: '%s'; usage: bench-late-validation [--ranks=P]\n", argv[i]);
    return 2;
  }
  const ScratchFolder folder;
  MustRun({"make-model", "mlp", "--layers=64", "--inputs=256", "--hidden=256", "--batch=32", "-o",
           folder / "model.onnx"});
  for (const std::string schedule : {"zb-h2", "zb-v"}) {
    const auto compile = [&](const std::string& name, std::vector<std::string> more) {
      const Plan plan{folder / (schedule + name)};
      std::vector<std::string> words = {"pipec",
                                        folder / "model.onnx",
                                        absl::StrCat("--stages=", P),
                                        absl::StrCat("--microbatches=", 3 * P),
                                        absl::StrCat("--schedule=", schedule),
                                        "--recompute=none",
                                        "--optimizer=sgd",
                                        "--json",
                                        "-o",
                                        plan.folder};
      words.insert(words.end(), more.begin(), more.end());
      return Plan{plan.folder, nlohmann::json::parse(MustRun(words).out)["step_time_s"]};
    };
    const Plan ahead = compile("-ahead", {}), waits = compile("-waits", {"--disable-pass=split-validation"});
    const auto measure = [&](const Plan& plan) {
      MustRun({"piperun", plan.folder, "--data=synthetic", "--device=replay",
               absl::StrCat("--steps=", kSteps), absl::StrCat("--trace=", folder / "trace.json")});
      return Median(ReadTrace(folder / "trace.json").periods);
    };
    std::vector<double> with, without, ratios;
    for (int pair = 0; pair < kPairs; ++pair) {
      with.push_back(measure(ahead));
      without.push_back(measure(waits));
      ratios.push_back(with.back() / without.back());
    }
    const std::string name = schedule == "zb-v" ? "zb_v" : "zb_h2";
    std::printf("%s_waits_simulated %.2f ms\n%s_ahead_simulated %.2f ms\n", name.c_str(),
                waits.simulated * 1e3, name.c_str(), ahead.simulated * 1e3);
    std::printf("%s_waits %.2f ms\n%s_ahead %.2f ms\n", name.c_str(), Median(without) * 1e3, name.c_str(),
                Median(with) * 1e3);
    PrintRatios(name + "_ahead_over_waits", ratios);
  }
  return 0;
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) { return pipec::bench::Main(argc, argv); }
