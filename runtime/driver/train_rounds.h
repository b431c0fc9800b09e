// Training where steps overlap, as there is no flush between them, as they are validated late or as the device is
// behind its host: what the ranks ask for while they run, each at its own pace.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "runtime/data/data_source.h"
#include "runtime/driver/batches.h"
#include "runtime/driver/observer.h"
#include "runtime/driver/run.h"
#include "runtime/driver/session.h"
#include "runtime/driver/training_scalars.h"

namespace pipec {

struct RoundsJob {
  const RunOptions* options;
  const TrainingSettings* settings;
  const DataSource* data;
  const TrainingBatches* batches;
};

// Where a run stands that is cut into pieces, between which the pipeline is empty: after `step` steps, which every rank
// has counted for itself.
struct RoundsState {
  int64_t step = 0;
  LossScaler scaler;  // --precision=fp16 only
  // Where steps may begin again: step `step` has stopped the run, with nothing updated, and how it was scaled.
  std::optional<StepResult> stopped;
  LossScaler scaler_of_stopped;
};

// Steps [state->step, end), or fewer if `options->stop` says so. `report` gets every step in order, on the thread
// of one rank. A step whose loss or norm is not finite ends the run (FailedPrecondition, naming it), unless
// gradients are scaled; where steps may begin again it is left to the caller (`stopped`), as the run is then where
// it was before the step. The scale of step t follows from the steps up to t - 2, as nobody knows more when it
// begins; where steps may begin again from t - 1: it begins as if that did not overflow.
absl::Status TrainRounds(Session& session, const RoundsJob& job, int64_t end, RoundsState* state,
                         const std::function<absl::Status(const StepReport&)>& report);

// "the first such value came in stage 2, node 'x' (Op), F of microbatch 1".
std::string OriginOf(const NonFinite& first);

}  // namespace pipec
