// What a run tells whoever watches it. The driver prints nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace pipec {

struct StepReport {
  int64_t step = 0;   // 1 for the first
  int64_t steps = 0;  // of the run
  std::optional<double> loss, gradient_norm;  // none on a device that computes nothing
  double lr = 0;
  // Only where gradients are float16: what they were multiplied by in this step, and the steps so far that
  // updated nothing, as gradients overflowed. `skipped`: this is one of them; loss and norm may not be finite.
  std::optional<double> loss_scale;
  int64_t skipped_steps = 0;
  bool skipped = false;
  // The update did not wait for the norms of all ranks, and had to be made again or undone.
  bool ahead = false, redone = false;
  double samples_per_second = 0;  // of this step
};

struct EvaluationReport {
  int64_t step = 0;  // training steps done
  int64_t samples = 0;
  std::optional<double> loss;  // none on a device that computes nothing
  std::optional<double> accuracy;
};

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // One line: what was assumed, what is loaded.
  virtual void OnNote(absl::string_view line) = 0;
  virtual void OnStep(const StepReport& report) = 0;
  virtual void OnEvaluation(const EvaluationReport& report) = 0;
  // Samples of an inference or evaluation done so far.
  virtual void OnProgress(absl::string_view what, int64_t done, int64_t total) = 0;
};

}  // namespace pipec
