// A tensor seen from one of its axes: element (o, l, i) lies at (o * length + l) * inner + i.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace pipec {

struct AxisView {
  int64_t outer = 1, length = 1, inner = 1;
};

// `axis` may count from the end. InvalidArgument if it is outside the shape.
absl::StatusOr<AxisView> ViewAlong(absl::Span<const int64_t> shape, int64_t axis);

// The same with all axes from `axis` on as one: inner is 1.
absl::StatusOr<AxisView> ViewFrom(absl::Span<const int64_t> shape, int64_t axis);

}  // namespace pipec
