// piperun: executes a plan. It trains, evaluates and infers.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/counted.h"
#include "runtime/base/format_size.h"
#include "runtime/plan/check.h"
#include "runtime/plan/load.h"
#include "tools/run_devices.h"
#include "tools/run_flags.h"
#include "tools/run_progress.h"
#include "tools/run_transports.h"

namespace pipec {
namespace {

std::atomic<bool> stop_requested{false};

// The first signal ends the run after its step; a second one kills as usual.
void StopAfterStep(int signal) {
  stop_requested = true;
  std::signal(signal, SIG_DFL);
}

int Cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

double SamplesPerSecond(const RunResult& result) {
  return result.seconds > 0 ? static_cast<double>(result.samples) / result.seconds : 0;
}

int64_t PeakBytes(const RunResult& result) {
  int64_t peak = 0;
  for (size_t r = 0; r < result.arena_bytes.size(); ++r) {
    peak = std::max(peak, result.arena_bytes[r] + result.workspace_bytes[r]);
  }
  return peak;
}

void PrintJson(const RunResult& result) {
  using nlohmann::ordered_json;
  ordered_json object = {{"mode", result.mode}, {"steps", result.steps}};
  object["first_loss"] = result.first_loss ? ordered_json(*result.first_loss) : ordered_json();
  object["last_loss"] = result.last_loss ? ordered_json(*result.last_loss) : ordered_json();
  object["skipped_steps"] = result.skipped_steps;
  object["updates_ahead"] = result.updates_ahead;
  object["updates_redone"] = result.updates_redone;
  object["evaluations"] = ordered_json::array();
  for (const EvaluationReport& report : result.evaluations) {
    object["evaluations"].push_back(
        {{"step", report.step},
         {"samples", report.samples},
         {"loss", report.loss ? ordered_json(*report.loss) : ordered_json()},
         {"accuracy", report.accuracy ? ordered_json(*report.accuracy) : ordered_json()}});
  }
  object["samples"] = result.samples;
  object["seconds"] = result.seconds;
  object["samples_per_second"] = SamplesPerSecond(result);
  object["peak_bytes"] = PeakBytes(result);
  object["arena_bytes"] = result.arena_bytes;
  object["workspace_bytes"] = result.workspace_bytes;
  object["grown_bytes"] = result.grown_bytes ? ordered_json(*result.grown_bytes) : ordered_json();
  std::cout << object.dump(1) << "\n";
}

void PrintText(const RunFlags& flags, const RunResult& result) {
  if (result.first_loss && result.last_loss) {
    std::cout << absl::StrFormat("loss          %.6f in the first step, %.6f in the last of %d\n",
                                 *result.first_loss, *result.last_loss, result.steps);
  }
  if (result.mode == "train" && (flags.device == "null" || flags.device == "replay"))
    std::cout << "loss          none: device " << flags.device << " computes nothing\n";
  if (!result.evaluations.empty() && result.evaluations.front().loss) {
    const EvaluationReport &first = result.evaluations.front(), &last = result.evaluations.back();
    std::cout << absl::StrFormat("evaluation    loss %.6f before, %.6f after\n", *first.loss, *last.loss);
    if (last.accuracy) {
      std::cout << absl::StrFormat("accuracy      %.2f %% before, %.2f %% after\n",
                                   first.accuracy.value_or(0) * 100, *last.accuracy * 100);
    }
  }
  if (result.skipped_steps > 0) {
    std::cout << "skipped       " << Counted(result.skipped_steps, "step", "steps")
              << ", whose gradients overflowed float16\n";
  }
  std::cout << absl::StrFormat("throughput    %.4g samples/s (measured, %s in %.1f s)\n",
                               SamplesPerSecond(result), Counted(result.samples, "sample", "samples"),
                               result.seconds);
  std::cout << "peak memory   " << FormatSize(PeakBytes(result))
            << " on the largest rank (planned arena, and workspace)";
  if (result.grown_bytes)
    std::cout << "; the process grew by " << FormatSize(*result.grown_bytes) << " (measured)";
  std::cout << "\n";
  for (const auto& [what, path] :
       {std::pair("export", &flags.options.export_directory), std::pair("outputs", &flags.options.outputs),
        std::pair("metrics", &flags.options.metrics), std::pair("trace", &flags.options.trace),
        std::pair("profile", &flags.options.profile)}) {
    if (!path->empty()) std::cout << absl::StrFormat("%-13s %s\n", what, *path);
  }
}

absl::StatusOr<RunResult> Execute(RunFlags& flags) {
  absl::StatusOr<Manifest> manifest = LoadManifest(flags.plan);
  if (!manifest.ok()) return manifest.status();
  const int threads =
      flags.threads > 0 ? flags.threads : std::max(1, Cores() / (manifest->ranks * manifest->replicas));
  RunProgress progress;
  progress.OnNote(absl::StrCat(flags.plan, ": ", manifest->model, ", ", manifest->schedule, ", ",
                               Counted(manifest->ranks, "rank", "ranks"), ", ",
                               manifest->replicas > 1 ? absl::StrCat(manifest->replicas, " replicas, ") : "",
                               Counted(manifest->microbatches, "microbatch", "microbatches"), " of ",
                               manifest->microbatch_size, ", ", Counted(threads, "thread", "threads"),
                               " a rank (--threads)"));
  absl::StatusOr<MakeDevice> make_device =
      MakeRunDevices(flags, manifest->ranks * manifest->replicas, threads, progress);
  if (!make_device.ok()) return make_device.status();
  absl::StatusOr<MakeTransport> make_transport = MakeRunTransports(flags, *manifest);
  if (!make_transport.ok()) return make_transport.status();
  flags.options.stop = &stop_requested;
  flags.options.threads = threads;
  return RunPlan(flags.plan, flags.options, *make_device, *make_transport, progress);
}

int Main(int argc, char** argv) {
  RunFlags flags;
  FlagTable table("piperun", "PLAN [flags]", "Executes a plan that pipec made: trains, evaluates or infers.");
  AddRunFlags(table, flags);
  if (std::optional<int> code = table.Parse(argc, argv)) return *code;
  if (flags.verify) {
    const absl::Status status = CheckPlan(flags.plan);
    if (!status.ok()) return Refuse("piperun", status);
    std::cout << flags.plan << ": the plan is sound\n";
    return Done("piperun");
  }
  std::signal(SIGINT, StopAfterStep);
  std::signal(SIGTERM, StopAfterStep);
  const absl::StatusOr<RunResult> result = Execute(flags);
  if (!result.ok()) return Refuse("piperun", result.status());
  if (flags.json) {
    PrintJson(*result);
  } else {
    PrintText(flags, *result);
  }
  return Done("piperun");
}

}  // namespace
}  // namespace pipec

int main(int argc, char** argv) { return pipec::Main(argc, argv); }
