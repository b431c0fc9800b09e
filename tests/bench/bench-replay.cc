// Measured over simulated step time on device replay, where kernels and messages take their modelled time and the executor and
// the transport are real: every schedule at 2, 4, 8 and 16 ranks.
//
//   bench-replay [--ranks=P,...]
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/schedule/schedule.h"
#include "tests/bench/run_program.h"

namespace pipec::bench {
namespace {

constexpr int kSteps = 5;

struct StepTimes {
  double simulated = 0, measured = 0;  // seconds
  double peak_bytes = 0;
};

// An MLP whose layers take milliseconds on the modelled device; two microbatches a rank and more.
StepTimes Run(const ScratchFolder& folder, const std::string& model, absl::string_view schedule, int ranks) {
  const std::string plan = folder / "replay.plan";
  const nlohmann::json report = nlohmann::json::parse(
      MustRun({"pipec", model, absl::StrCat("--stages=", ranks),
               absl::StrCat("--microbatches=", std::max(8, 2 * ranks)), absl::StrCat("--schedule=", schedule),
               "--recompute=none", "--optimizer=sgd", "--json", "-o", plan})
          .out);
  const nlohmann::json result =
      nlohmann::json::parse(MustRun({"piperun", plan, "--data=synthetic", "--device=replay",
                                     absl::StrCat("--steps=", kSteps), "--json"})
                                .out);
  return {report["step_time_s"], result["seconds"].get<double>() / kSteps, report["peak_bytes"]};
}

int Main(int argc, char** argv) {
  std::string ranks = "2,4,8,16";
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (!absl::ConsumePrefix(&word, "--ranks=")) {
      std::fprintf(stderr, "bench-replay: '%s'; usage: bench-replay [--ranks=P,...]\n", argv[i]);
      return 2;
    }
    ranks = std::string(word);
  }
  const ScratchFolder folder;
  const std::string model = folder / "model.onnx";
  MustRun({"make-model", "mlp", "--layers=64", "--inputs=768", "--hidden=768", "--batch=8", "-o", model});
  double worst = 0;
  std::printf("%-12s %5s %14s %13s %8s %10s\n", "schedule", "ranks", "simulated, ms", "measured, ms", "ratio",
              "peak, MB");
  for (const absl::string_view text : absl::StrSplit(ranks, ',')) {
    int P = 0;
    if (!absl::SimpleAtoi(text, &P) || P < 1) return 2;
    for (const ScheduleInfo& info : AllSchedules()) {
      if (info.forward_only) continue;
      const StepTimes times = Run(folder, model, info.name, P);
      const double ratio = times.measured / times.simulated;
      worst = std::max({worst, ratio, 1 / ratio});
      std::printf("%-12s %5d %14.1f %13.1f %8.3f %10.1f\n", std::string(info.name).c_str(), P,
                  times.simulated * 1e3, times.measured * 1e3, ratio, times.peak_bytes / 1e6);
      std::fflush(stdout);
    }
  }
  const StepTimes gpipe = Run(folder, model, "gpipe", 4), one = Run(folder, model, "1f1b", 4);
  std::printf("one_f_one_b_over_gpipe_peak %.3f ratio\n", one.peak_bytes / gpipe.peak_bytes);
  std::printf("one_f_one_b_over_gpipe_step %.3f ratio\n", one.measured / gpipe.measured);
  std::printf("replay_worst %.3f ratio\n", worst);
  return 0;
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) { return pipec::bench::Main(argc, argv); }
