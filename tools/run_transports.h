// What piperun's --transport names: how the ranks of this process are connected.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/driver/session.h"
#include "runtime/plan/manifest.h"
#include "tools/run_flags.h"

namespace pipec {

// InvalidArgument if the number of GPUs does not go with it.
absl::StatusOr<MakeTransport> MakeRunTransports(const RunFlags& flags, const Manifest& manifest);

}  // namespace pipec
