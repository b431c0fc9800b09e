#include "runtime/transport/nccl/nccl_status.h"

#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

absl::StatusCode CodeOf(ncclResult_t result) {
  switch (result) {
    case ncclRemoteError:
    case ncclSystemError:
      return absl::StatusCode::kUnavailable;
    case ncclInvalidArgument:
      return absl::StatusCode::kInvalidArgument;
    case ncclInvalidUsage:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status NcclStatus(ncclResult_t result, absl::string_view call, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  const char* const last = ncclGetLastError(comm);
  return absl::Status(CodeOf(result), absl::StrCat(call, ": ", ncclGetErrorString(result),
                                                   last == nullptr || *last == '\0' ? "" : "; ",
                                                   last == nullptr ? "" : last));
}

}  // namespace pipec
