// Pad read from an instruction: its mode, and how much goes before and after each axis.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/device.h"

namespace pipec {

enum class PadMode { kConstant, kEdge, kReflect, kWrap };

// By axis; negative padding cuts.
struct Padding {
  Shape before, after;
};

// What is between the padding: `shape` elements, from element `from` of the operand to element `to` of the result.
struct PadKept {
  Shape shape;
  int64_t from = 0, to = 0;
};
PadKept KeptOf(const Shape& x, const Shape& y, const Padding& padding);

// Where place `at` of an axis of n places, which may be outside, is taken from; not in mode constant.
int64_t PlaceInside(PadMode mode, int64_t at, int64_t n);

class PadOperands {
 public:
  static absl::StatusOr<PadOperands> Of(const KernelSpec& spec);

  PadMode mode() const { return mode_; }
  // Whether the padding was known at load: then it is this.
  bool known() const { return known_; }
  const Padding& padding() const { return padding_; }
  // From the contents of inputs 1 and 3 (null if there is none). InvalidArgument if it is not the result's shape.
  // Allocates nothing if all is well.
  absl::StatusOr<Padding> Place(const void* pads_contents, const void* axes_contents) const;
  bool has_axes() const { return axes_.dtype != DType::kUndefined; }

 private:
  PadMode mode_ = PadMode::kConstant;
  TensorType x_, y_, pads_, axes_;  // axes_ undefined: all
  bool known_ = false;
  Padding padding_;
};

}  // namespace pipec
