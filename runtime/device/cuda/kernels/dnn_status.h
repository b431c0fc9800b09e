// cuDNN's errors as statuses.
#pragma once

#include <cudnn.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace pipec::cuda {

// OK, or an error that names the call and cuDNN's own words: Unimplemented for what it does not support, Internal for
// the rest.
absl::Status DnnStatus(cudnnStatus_t status, absl::string_view call);

}  // namespace pipec::cuda

// RETURN_IF_DNN_ERROR(cudnnSetStream(dnn, stream)): the text of the call is its name.
#define RETURN_IF_DNN_ERROR(call) RETURN_IF_ERROR(::pipec::cuda::DnnStatus(call, #call))
