// How the elements of inputs meet the elements of a broadcast result, as runs of contiguous places.
//
// Adjacent axes that every input walks the same way are merged, so that equal shapes become one run, a bias
// becomes one run a row, and a scalar operand stays a scalar for the whole run.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/operands/check.h"

namespace pipec {

// NumPy's broadcast of the shapes; InvalidArgument if two dimensions disagree.
absl::StatusOr<Shape> BroadcastShape(absl::Span<const Shape> shapes);

template <int kInputs>
struct Broadcast {
  int rank = 1;  // at least 1
  int64_t elements = 0;
  std::array<int64_t, kMaxRank> dims{};
  std::array<std::array<int64_t, kMaxRank>, kInputs> strides{};  // in elements; of the last axis: 0 or 1

  // Inputs must broadcast to exactly `shape`, of rank <= kMaxRank.
  static Broadcast Make(const std::array<Shape, kInputs>& inputs, const Shape& shape);

  // f(place in the result, {place in each input}, length) for the runs that make up elements [begin, end).
  template <typename F>
  void ForEachRun(int64_t begin, int64_t end, F f) const {
    if (begin >= end) return;
    std::array<int64_t, kMaxRank> at{};
    std::array<int64_t, kInputs> offset{};
    int64_t rest = begin;
    for (int axis = rank - 1; axis >= 0; --axis) {
      at[axis] = rest % dims[axis];
      rest /= dims[axis];
      for (int k = 0; k < kInputs; ++k) offset[k] += at[axis] * strides[k][axis];
    }
    for (int64_t place = begin;;) {
      const int64_t length = std::min(dims[rank - 1] - at[rank - 1], end - place);
      f(place, offset, length);
      place += length;
      if (place >= end) return;
      for (int k = 0; k < kInputs; ++k) offset[k] -= at[rank - 1] * strides[k][rank - 1];
      at[rank - 1] = 0;
      for (int axis = rank - 2; axis >= 0; --axis) {
        for (int k = 0; k < kInputs; ++k) offset[k] += strides[k][axis];
        if (++at[axis] < dims[axis]) break;
        for (int k = 0; k < kInputs; ++k) offset[k] -= dims[axis] * strides[k][axis];
        at[axis] = 0;
      }
    }
  }
};

template <int kInputs>
Broadcast<kInputs> Broadcast<kInputs>::Make(const std::array<Shape, kInputs>& inputs, const Shape& shape) {
  Broadcast b;
  b.elements = NumElements(shape);
  b.rank = 0;
  const int rank = static_cast<int>(shape.size());
  std::array<Shape, kInputs> natural;
  for (int k = 0; k < kInputs; ++k) natural[k] = Strides(inputs[k]);
  for (int axis = 0; axis < rank; ++axis) {
    if (shape[axis] == 1) continue;
    std::array<int64_t, kInputs> stride;
    bool merges = b.rank > 0;
    for (int k = 0; k < kInputs; ++k) {
      const int own = axis - rank + static_cast<int>(inputs[k].size());
      stride[k] = own < 0 || inputs[k][own] == 1 ? 0 : natural[k][own];
      merges = merges && b.strides[k][b.rank - 1] == stride[k] * shape[axis];
    }
    const int to = merges ? b.rank - 1 : b.rank++;
    b.dims[to] = merges ? b.dims[to] * shape[axis] : shape[axis];
    for (int k = 0; k < kInputs; ++k) b.strides[k][to] = stride[k];
  }
  if (b.rank == 0) {
    b.rank = 1;
    b.dims[0] = 1;
  }
  return b;
}

}  // namespace pipec
