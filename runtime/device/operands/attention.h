// FusedAttention and FusedAttentionGrad read from an instruction (compiler/ops/README.md has their meaning).
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/device.h"

namespace pipec {

// A head: Q [rows, depth], K [columns, depth], V [columns, width] -> O [rows, width]. Heads lie one after the other.
struct Attention {
  // Floats that are added; bools, false: `fill`. None, too, where it is known to change nothing.
  enum class Mask { kNone, kAdded, kChosen };

  DType dtype = DType::kUndefined;  // of Q, K, V, O
  Shape heads;                      // the leading axes
  int64_t rows = 0, columns = 0, depth = 0, width = 0;
  float scale = 1, fill = 0;
  bool causal = false;     // rows == columns; column j weighs nothing in row i < j
  bool zero_rows = false;  // a row of weights that is NaN is 0

  Mask mask = Mask::kNone;
  Shape
      mask_steps;  // elements of the mask from one entry of an axis of `heads` to the next; 0: the same for all
  int64_t mask_row_step = 0, mask_column_step = 0;

  int64_t head_count() const { return NumElements(heads); }
  // Where the mask of this head starts.
  int64_t MaskAt(int64_t head) const;

  // InvalidArgument for operands and results that do not belong together, or have an empty axis.
  static absl::StatusOr<Attention> Of(const KernelSpec& spec);
  static absl::StatusOr<Attention> OfGrad(const KernelSpec& spec);
};

}  // namespace pipec
