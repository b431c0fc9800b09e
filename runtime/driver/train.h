// The training loop.
#pragma once

#include "absl/status/status.h"
#include "runtime/driver/run.h"
#include "runtime/driver/trace_file.h"

namespace pipec {

// Fills the result as it goes. `eval_data` may be null.
absl::Status Train(Session& session, const RunOptions& options, const DataSource& data,
                   const DataSource* eval_data, TraceFile* trace, RunObserver& observer, RunResult* result);

}  // namespace pipec
