// Runs a plan: the loop over steps. Feeds data, runs the executors, reads losses, evaluates, saves.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/data_source.h"
#include "runtime/driver/hyperparameters.h"
#include "runtime/driver/observer.h"
#include "runtime/driver/session.h"
#include "runtime/executor/executor.h"

namespace pipec {

struct RunOptions {
  std::string data;
  std::string eval_data;   // "": no evaluation
  int64_t eval_every = 0;  // 0: before the first and after the last step only
  std::optional<int64_t> steps;
  std::optional<double> epochs;  // with neither: 1
  bool shuffle = false;
  TokenType tokens = TokenType::kNone;
  Hyperparameters hyperparameters;
  uint64_t seed = 0;
  ExecutorOptions executor;
  std::string metrics;  // files and directories; "": none
  std::string trace;
  std::string profile;
  int threads = 1;  // of a rank, as the profile says
  std::string export_directory;
  std::string outputs;
  const std::atomic<bool>* stop = nullptr;  // set by a signal: end after this step
};

struct RunResult {
  std::string mode;  // train, infer
  int64_t steps = 0;
  std::optional<double> first_loss, last_loss;
  int64_t skipped_steps = 0;  // float16 overflowed: they updated nothing
  int64_t updates_ahead = 0, updates_redone = 0;  // that did not wait for norms; of those, that were not right
  std::vector<EvaluationReport> evaluations;
  int64_t samples = 0;
  double seconds = 0;                                 // of the steps, evaluation left out
  std::vector<int64_t> arena_bytes, workspace_bytes;  // by rank
  // By how much the process's own memory had grown at the end of the steps, since before it had arenas; arenas,
  // workspace and whatever else the run took. None where the system does not say.
  std::optional<int64_t> grown_bytes;
};

// Errors: what is wrong with plan, flags or data; the first failure of a rank; Cancelled after options.stop.
absl::StatusOr<RunResult> RunPlan(const std::string& directory, const RunOptions& options,
                                  const MakeDevice& make_device, const MakeTransport& make_transport,
                                  RunObserver& observer);

}  // namespace pipec
