// --profile: what everything took. `pipec --profile` reads it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/driver/session.h"

namespace pipec {

// {"pipec_profile": 2,            the format
//  "device": "cpu", "threads": 1, threads of a rank
//  "ranks": 2,                    how many were busy at a time
//  "model": "gpt", "schedule": "1f1b", "microbatches": 32, "microbatch_size": 1,
//  "nodes": [{"name", "op", "stage", "kind": "F",
//             "key": what the time depends on (CostKey), "flops", "bytes": what the plan says that a run does,
//             "seconds": of a run, "runs"}, ...],
//  "action_seconds": what an action takes beside its nodes,
//  "messages": [{"bytes", "seconds": from when both ends are ready until the receiver goes on, "runs"}, ...]}
//
// Seconds are means of the middle half of the latest runs, the first step apart. Messages are of the last step, and
// only those that were waited for. Nothing else of the model is needed to use it: `model` and what follows up to
// `nodes` say where it comes from.
absl::Status WriteProfile(Session& session, int threads, const std::string& path);

}  // namespace pipec
