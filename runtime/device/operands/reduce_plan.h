// Which axes a reduction removes, as few axes as possible: neighbours of the same fate are merged.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/operands/check.h"

namespace pipec {

struct ReduceAxis {
  int64_t size, stride;  // of the operand, in elements
};

// The operand's elements are kept x reduced; the result is row-major over the kept axes.
struct ReducePlan {
  std::array<ReduceAxis, kMaxRank> kept{}, reduced{};  // outermost first
  int kept_rank = 0, reduced_rank = 0;
  int64_t kept_elements = 1, reduced_elements = 1;
  bool inner_reduced = false;  // the axis with stride 1 is reduced
};

// Axes may be negative; an empty list means all axes, or none if `noop`. `result` is checked against them.
// InvalidArgument for an axis out of range or a result of another shape. Allocates nothing if all is well.
absl::StatusOr<ReducePlan> MakeReducePlan(const Shape& operand, absl::Span<const int64_t> axes,
                                          bool keep_dims, bool noop, const Shape& result);

// The place of element `index` of the product of these axes, in elements of the operand.
inline int64_t OffsetOf(const ReduceAxis* axes, int rank, int64_t index) {
  int64_t offset = 0;
  for (int i = rank - 1; i > 0; --i) {
    offset += index % axes[i].size * axes[i].stride;
    index /= axes[i].size;
  }
  return rank == 0 ? 0 : offset + index * axes[0].stride;
}

}  // namespace pipec
