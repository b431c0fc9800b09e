// Evaluation and inference: the list `eval` over a whole data set, in its own order. Parameters, optimizer
// state and the training's data order stay as they are.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/data/host_array.h"
#include "runtime/driver/run.h"
#include "runtime/driver/trace_file.h"

namespace pipec {

// Loss over all samples and, with class labels, accuracy. An incomplete last batch is padded, and the padding
// weighs nothing: the losses of the op table leave it out; where the model computes its loss in another way,
// an incomplete last microbatch is left out of the loss, and a note says so.
absl::StatusOr<EvaluationReport> Evaluate(Session& session, const DataSource& data, const RunOptions& options,
                                          int64_t step, RunObserver& observer);

// Runs all samples; fills `outputs`, if not null, with every output, samples in input order, padding cut. `trace`, if
// not null, gets every batch.
absl::Status Infer(Session& session, const DataSource& data, const RunOptions& options, TraceFile* trace,
                   RunObserver& observer, RunResult* result, NamedArrays* outputs);

}  // namespace pipec
