// NCCL's errors as statuses.
#pragma once

#include <nccl.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pipec {

// OK for success and for what is in progress; else an error that names the call and NCCL's own words. Unavailable
// if a peer or the network is gone, InvalidArgument and FailedPrecondition for misuse, Internal for the rest.
// `comm` may be null.
absl::Status NcclStatus(ncclResult_t result, absl::string_view call, ncclComm_t comm);

}  // namespace pipec
