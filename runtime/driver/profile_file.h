// --profile: the measured cost of every node.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/driver/session.h"

namespace pipec {

// {"device": "cpu", "model": ..., "microbatch_size": n, "nodes": [{"name", "op", "stage", "kind", "seconds"
// (mean of a run), "runs"}]}
absl::Status WriteProfile(Session& session, absl::string_view device, const std::string& path);

}  // namespace pipec
