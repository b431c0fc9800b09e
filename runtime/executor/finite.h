// Looking for NaN and infinity in tensors.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "runtime/base/dtype.h"

namespace pipec {

struct NonFiniteKinds {
  bool nan = false;
  bool infinity = false;
  bool any() const { return nan || infinity; }
};

// Types that are not float hold neither.
NonFiniteKinds FindNonFinite(DType dtype, absl::Span<const std::byte> bytes);

}  // namespace pipec
