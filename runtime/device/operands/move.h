// Ops that copy a view of one tensor into a view of another: Transpose, Expand, Tile, Slice, Concat, ... read as
// strides.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/device.h"

namespace pipec {

// Element i of the view `shape` goes from from_offset + i * from to to_offset + i * to; all in elements.
struct StridedMove {
  Shape shape, from, to;
  int64_t from_offset = 0, to_offset = 0;
};
// Ranks of moves: Tile sees each axis of an operand as two.
inline constexpr int kMoveRank = 16;

// Each checks the whole instruction. Errors: InvalidArgument for operands, results or attributes that do not fit;
// Unimplemented for elements of no size.
absl::StatusOr<StridedMove> TransposeMove(const KernelSpec& spec);
// A shape that is known at launch only is taken from the plan.
absl::StatusOr<StridedMove> ExpandMove(const KernelSpec& spec);
absl::StatusOr<StridedMove> TileMove(const KernelSpec& spec);
absl::StatusOr<StridedMove> DepthToSpaceMove(const KernelSpec& spec);
absl::StatusOr<StridedMove> SpaceToDepthMove(const KernelSpec& spec);
// Into zeros.
absl::StatusOr<StridedMove> SliceGradMove(const KernelSpec& spec);
// Of every input into the result; of the input into every result, whether it is there or not.
absl::StatusOr<std::vector<StridedMove>> ConcatMoves(const KernelSpec& spec);
absl::StatusOr<std::vector<StridedMove>> SplitMoves(const KernelSpec& spec);

// Slice, whose bounds may be known at launch only.
class SliceOperands {
 public:
  static absl::StatusOr<SliceOperands> Of(const KernelSpec& spec);

  // Whether all of inputs 1 to 4 were known at load; then Place takes `constants`.
  bool known() const { return known_; }
  const void* const* constants() const { return constants_; }
  // The move, from the contents of all inputs; input 0 is not looked at. InvalidArgument if it is not the result's
  // shape. Allocates nothing if all is well.
  absl::StatusOr<StridedMove> Place(const void* const* inputs) const;

 private:
  TensorType x_, y_;
  TensorType types_[5];  // of the inputs; undefined: absent
  const void* constants_[5] = {};
  bool known_ = true;
};

// Identity, Reshape, Flatten, Squeeze, Unsqueeze: the same elements in the same order. The shapes are checked as far as
// constants say what they ought to be.
absl::Status CheckIdentity(const KernelSpec& spec);
absl::Status CheckFlatten(const KernelSpec& spec);
absl::Status CheckReshape(const KernelSpec& spec);
absl::Status CheckSqueeze(const KernelSpec& spec);
absl::Status CheckUnsqueeze(const KernelSpec& spec);

}  // namespace pipec
