// Operands of indices, int32 or int64, which may count from the end. All are
// looked at before anything is read or written through one.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {

// The indices are count / dims.size() tuples, each into axes of these sizes.
// InvalidArgument for the first one outside.
template <typename I>
absl::Status CheckIndices(const I *indices, int64_t count, absl::Span<const int64_t> dims) {
  const int64_t tuple = static_cast<int64_t>(dims.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t dim = tuple == 1 ? dims[0] : dims[i % tuple];
    if (indices[i] < -dim || indices[i] >= dim) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", indices[i], " at position ", i, " is outside [", -dim, ",", dim - 1, "]"));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec::cpu
