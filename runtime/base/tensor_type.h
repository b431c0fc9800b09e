// Shape and element type of a tensor: what compiler, plan and kernels all mean by a tensor's type.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "runtime/base/dtype.h"

namespace pipec {

using Shape = absl::InlinedVector<int64_t, 6>;

// Product of the dimensions; 1 for a scalar. Dimensions are never negative here.
int64_t NumElements(absl::Span<const int64_t> shape);

// Row-major strides, in elements.
Shape Strides(absl::Span<const int64_t> shape);

// "[2,3]"; "[]" for a scalar.
std::string ToString(absl::Span<const int64_t> shape);

struct TensorType {
  DType dtype = DType::kUndefined;
  Shape shape;

  int64_t elements() const { return NumElements(shape); }
  int64_t bytes() const { return elements() * SizeOf(dtype); }
  bool operator==(const TensorType&) const = default;
};

// "float32[2,3]".
std::string ToString(const TensorType& type);

}  // namespace pipec
