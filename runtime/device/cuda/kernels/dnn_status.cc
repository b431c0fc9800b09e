#include "runtime/device/cuda/kernels/dnn_status.h"

#include "absl/strings/str_cat.h"

namespace pipec::cuda {

absl::Status DnnStatus(cudnnStatus_t status, absl::string_view call) {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  const absl::StatusCode code = CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED
                                    ? absl::StatusCode::kUnimplemented
                                    : absl::StatusCode::kInternal;
  return absl::Status(code, absl::StrCat(call, ": ", cudnnGetErrorString(status)));
}

}  // namespace pipec::cuda
