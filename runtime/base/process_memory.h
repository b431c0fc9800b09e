// What this process takes of the machine's memory.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace pipec {

// Bytes of memory that are the process's own: written to, and backed by no file. Pages of mapped files and of programs,
// which the system can take back at any time, do not count. From /proc/self/status, RssAnon (proc_pid_status(5));
// Unavailable where the system does not say.
absl::StatusOr<int64_t> OwnMemoryBytes();

}  // namespace pipec
