// Whether a result is the expected one, by the suite's rule.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

// Floats: |got - wanted| <= 1e-7 + 1e-3 |wanted|, NaN equals NaN; all else is equal bit by bit. The status
// names the first element that differs.
absl::Status Compare(const TensorType& type, absl::string_view got, absl::string_view wanted);

}  // namespace pipec
