// Measured over simulated step time on device replay, where kernels and messages take their modelled time and the
// executor and the transport are real: every schedule at 2, 4, 8 and 16 ranks, with messages that take next to nothing
// and with messages that take a fifth of a stage's forward pass.
//
//   bench-replay [--ranks=P,...] [--schedules=NAME,...]
//
// Then what 1f1b saves of gpipe's memory and costs of its time at 4 ranks and 16 microbatches. The machine must be
// otherwise idle: a thread that wakes up late is late for all others.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/schedule/schedule.h"
#include "tests/bench/figures.h"
#include "tests/bench/run_program.h"
#include "tests/bench/traced_run.h"

namespace pipec::bench {
namespace {

using nlohmann::json;

constexpr int kSteps = 5;
constexpr int kPairs = 3;
constexpr int kLateMicrobatches = 128;  // of schedules whose steps overlap, after the pipeline is full
constexpr int kWidth = 256, kRows = 64;

struct StepTimes {
  double simulated = 0, measured = 0;  // seconds
  double peak_bytes = 0;
  double ratio() const { return measured / simulated; }
};

class Replay {
 public:
  Replay() {
    MustRun({"make-model", "mlp", "--layers=64", absl::StrCat("--inputs=", kWidth),
             absl::StrCat("--hidden=", kWidth), absl::StrCat("--batch=", kRows), "-o",
             folder_ / "model.onnx"});
  }

  StepTimes Run(absl::string_view schedule, int ranks, int microbatches, double hop_seconds) const {
    std::vector<std::string> words = Pipec(schedule, ranks, microbatches);
    if (hop_seconds > 0) words.push_back(absl::StrCat("--profile=", ProfileOfMessages(hop_seconds)));
    const json report = json::parse(MustRun(words).out);
    if (const ScheduleInfo* info = FindSchedule(schedule); info != nullptr && info->late_updates) {
      // Steps overlap, and filling and emptying the pipeline belong to none: what more steps take. Two whole runs are
      // compared, so one late thread anywhere counts: the median of several pairs.
      const int few = 2 * ranks, more = few + kLateMicrobatches / microbatches;
      std::vector<double> pairs;
      for (int k = 0; k < kPairs; ++k) pairs.push_back((RunSeconds(more) - RunSeconds(few)) / (more - few));
      return {report["step_time_s"], Median(pairs), report["peak_bytes"]};
    }
    const std::string trace = folder_ / "trace.json";
    MustRun({"piperun", folder_ / "replay.plan", "--data=synthetic", "--device=replay",
             absl::StrCat(schedule == "infer" ? "--epochs=" : "--steps=", schedule == "infer" ? 1 : kSteps),
             absl::StrCat("--trace=", trace)});
    const TracedRun run = ReadTrace(trace);
    // Where a step is validated in the next they overlap, and the modelled time is that from step to step.
    const bool overlap = !run.gaps.empty() && Median(run.gaps) < 0;
    return {report["step_time_s"], Median(overlap ? run.periods : run.steps), report["peak_bytes"]};
  }

  double RunSeconds(int steps) const {
    const json result = json::parse(MustRun({"piperun", folder_ / "replay.plan", "--data=synthetic",
                                             "--device=replay", absl::StrCat("--steps=", steps), "--json"})
                                        .out);
    return result["seconds"];
  }

  // Of stage 0's forward pass with one stage a rank.
  double ForwardSeconds(int ranks, int microbatches) const {
    return json::parse(MustRun(Pipec("gpipe", ranks, microbatches)).out)["stages"][0]["forward_s"];
  }

 private:
  std::vector<std::string> Pipec(absl::string_view schedule, int ranks, int microbatches) const {
    std::vector<std::string> words = {"pipec",
                                      folder_ / "model.onnx",
                                      absl::StrCat("--stages=", ranks),
                                      absl::StrCat("--microbatches=", microbatches),
                                      absl::StrCat("--schedule=", schedule),
                                      "--json",
                                      "-o",
                                      folder_ / "replay.plan"};
    if (schedule != "infer") words.insert(words.end(), {"--recompute=none", "--optimizer=sgd"});
    return words;
  }

  // A profile in which every message takes this long, and no node of the model.
  std::string ProfileOfMessages(double seconds) const {
    const std::string path = folder_ / "hops.json";
    const json node = {{"key", "none"}, {"flops", 0}, {"bytes", 0}, {"seconds", 0}, {"runs", 1}};
    const json message = {{"bytes", kWidth * kRows * 4}, {"seconds", seconds}, {"runs", 1}};
    std::ofstream(path) << json{{"pipec_profile", 2},
                                {"device", "cpu"},
                                {"threads", 1},
                                {"ranks", 1},
                                {"action_seconds", 0},
                                {"nodes", json::array({node})},
                                {"messages", json::array({message})}};
    return path;
  }

  const ScratchFolder folder_;
};

int Usage(const char* word) {
  std::fprintf(stderr, "bench-replay: '%s'; usage: bench-replay [--ranks=P,...] [--schedules=NAME,...]\n",
               word);
  return 2;
}

int Main(int argc, char** argv) {
  std::vector<std::string> ranks = {"2", "4", "8", "16"}, schedules;
  for (const ScheduleInfo& info : AllSchedules()) schedules.emplace_back(info.name);
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (absl::ConsumePrefix(&word, "--ranks=")) {
      ranks = absl::StrSplit(word, ',');
    } else if (absl::ConsumePrefix(&word, "--schedules=")) {
      schedules = absl::StrSplit(word, ',');
    } else {
      return Usage(argv[i]);
    }
  }
  const Replay replay;
  double worst = 1;
  std::printf("%-12s %5s %12s %14s %13s %8s %10s\n", "schedule", "ranks", "message, ms", "simulated, ms",
              "measured, ms", "ratio", "peak, MB");
  for (const std::string& text : ranks) {
    int P = 0;
    if (!absl::SimpleAtoi(text, &P) || P < 1) return Usage(text.c_str());
    const int M = std::max(8, 2 * P);
    const double forward = replay.ForwardSeconds(P, M);
    for (const double hop : {0.0, 0.2 * forward}) {
      for (const std::string& schedule : schedules) {
        const ScheduleInfo* info = FindSchedule(schedule);
        const bool alone = info != nullptr && info->updates_each_microbatch;  // a step is one microbatch
        const StepTimes times = replay.Run(schedule, P, alone ? 1 : M, hop);
        worst = std::max({worst, times.ratio(), 1 / times.ratio()});
        std::printf("%-12s %5d %12.2f %14.1f %13.1f %8.3f %10.1f\n", schedule.c_str(), P, hop * 1e3,
                    times.simulated * 1e3, times.measured * 1e3, times.ratio(), times.peak_bytes / 1e6);
        std::fflush(stdout);
      }
    }
  }
  const double hop = 0.2 * replay.ForwardSeconds(4, 16);
  const StepTimes gpipe = replay.Run("gpipe", 4, 16, hop), one = replay.Run("1f1b", 4, 16, hop);
  std::printf("one_f_one_b_over_gpipe_peak %.3f ratio\n", one.peak_bytes / gpipe.peak_bytes);
  std::printf("one_f_one_b_over_gpipe_step %.3f ratio\n", one.measured / gpipe.measured);
  std::printf("replay_worst %.3f ratio\n", worst);
  return 0;
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) { return pipec::bench::Main(argc, argv); }
