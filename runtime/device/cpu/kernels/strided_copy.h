// A copy between two views of the same shape, each with its own strides: what Transpose, Slice, Expand, Tile,
// Concat, Split and Pad come down to.
//
// Adjacent axes that both views walk alike are merged, then one of four inner loops does the work: contiguous
// on both sides (memcpy), contiguous on different axes (a transposition, in blocks that fit the cache), one
// value repeated, or any strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {

class StridedCopy {
 public:
  StridedCopy() = default;
  // Strides in elements of `element_bytes` (1, 2, 4 or 8); any sign, 0 in `from` repeats. The places in `to`
  // are distinct. At most kCopyRank axes. Allocates nothing.
  StridedCopy(int64_t element_bytes, absl::Span<const int64_t> shape, absl::Span<const int64_t> from_strides,
              absl::Span<const int64_t> to_strides);

  // `from` and `to` point at element 0 of their views and do not overlap.
  void Run(const void* from, void* to) const;

  static constexpr int kCopyRank = 2 * kMaxRank;

 private:
  struct Axis {
    int64_t size, from, to;  // strides in bytes
  };
  enum class Inner { kBytes, kTransposed, kRepeated, kStrided };

  template <typename F>
  void ForEachRow(int64_t begin, int64_t end, F f) const;
  template <typename T>
  void RunTyped(const std::byte* from, std::byte* to) const;

  int64_t element_bytes_ = 1;
  int outer_rank_ = 0;
  std::array<Axis, kCopyRank> outer_{};  // in the order of `to`
  int64_t rows_ = 0;                     // product of the outer sizes
  Inner inner_ = Inner::kBytes;
  Axis row_{};       // the inner loop's axis; kBytes: size in bytes
  Axis from_row_{};  // kTransposed: the axis along which `from` is contiguous
};

}  // namespace pipec::cpu
