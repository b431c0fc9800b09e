// What piperun's --device names: a device for each rank.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/driver/observer.h"
#include "runtime/driver/session.h"
#include "tools/run_flags.h"

namespace pipec {

// Unavailable if there is no GPU for --device=cuda. Ranks are spread over the GPUs of this process in order,
// several on one if there are fewer; a note says so.
absl::StatusOr<MakeDevice> MakeRunDevices(const RunFlags& flags, int ranks, int threads,
                                          RunObserver& observer);

}  // namespace pipec
