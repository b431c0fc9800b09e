// Which sample of the microbatch an element of a tensor belongs to: what dropout draws by and losses cut
// padding off by.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/device.h"

namespace pipec {

// Along the batch axis samples lie one after the other, each with shape[axis] / count entries; `inner`
// elements of one sample lie together in memory.
struct Samples {
  bool known = false;  // else all is one sample and none of it is padding
  int64_t outer = 1, count = 1, inner = 1;

  // Reads the attributes batch_axis (0 if absent, -1: not known) and samples (the axis' size if absent).
  // InvalidArgument if the axis is not there or does not hold whole samples.
  static absl::StatusOr<Samples> Of(const KernelSpec& spec, absl::Span<const int64_t> shape);

  int64_t elements() const { return outer * count * inner; }
  int64_t SampleOf(int64_t element) const { return element / inner % count; }
  bool IsPadding(int64_t element, const StepScalars& scalars) const {
    return known && SampleOf(element) >= scalars.valid_samples;
  }
  // Elements that are not padding.
  int64_t Valid(const StepScalars& scalars) const {
    return known ? outer * inner * std::clamp<int64_t>(scalars.valid_samples, 0, count) : elements();
  }
  // Whether they come before all padding.
  bool valid_first() const { return outer == 1; }
};

}  // namespace pipec
