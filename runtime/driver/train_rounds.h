// Training without a flush between steps: what the ranks ask for while they run, each at its own pace.
#pragma once

#include <cstdint>
#include <functional>

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
};

// Steps [state->step, end), or fewer if `options->stop` says so. `report` gets every step in order, on the thread of one
// rank. A step whose loss or norm is not finite ends the run (FailedPrecondition, naming it), unless gradients are
// scaled. The scale of step t follows from the steps up to t - 2, as nobody knows more when it begins.
absl::Status TrainRounds(Session& session, const RoundsJob& job, int64_t end, RoundsState* state,
                         const std::function<absl::Status(const StepReport&)>& report);

// "the first such value came in stage 2, node 'x' (Op), F of microbatch 1".
std::string OriginOf(const NonFinite& first);

}  // namespace pipec
