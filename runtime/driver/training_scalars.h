// The run-time scalars of a training step.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device/scalars.h"
#include "runtime/driver/hyperparameters.h"
#include "runtime/driver/loss_scaler.h"
#include "runtime/plan/manifest.h"

namespace pipec {

// What all steps of a run have in common.
struct TrainingSettings {
  Hyperparameters hyperparameters;    // with defaults
  std::vector<ParameterScalars> base;  // by trained parameter: rate and decay before the schedule
  uint64_t seed = 0;
  int64_t steps = 0;                   // of the run
};

struct TrainingScalars {
  std::vector<StepScalars> microbatches;     // M entries for each replica
  std::vector<ParameterScalars> parameters;  // what they point at

  // Of step `step`. `scaler`: null unless gradients are scaled. `lr_delay`: of the weights, for --staleness=lr; 0: the
  // rate stays what it is.
  void Set(const TrainingSettings& settings, const Manifest& manifest, int64_t step, const LossScaler* scaler,
           int lr_delay);
};

}  // namespace pipec
