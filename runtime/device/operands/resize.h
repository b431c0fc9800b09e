// Resize read from an instruction: the taps of every axis.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/resize_taps.h"

namespace pipec {

class ResizeOperands {
 public:
  // Everything is checked. Modes but nearest, and crops, are of float32 and float64.
  static absl::StatusOr<ResizeOperands> Of(const KernelSpec& spec);

  const ResizeRule& rule() const { return rule_; }
  bool crops() const { return rule_.coordinates == Coordinates::kTfCropAndResize; }
  float extrapolation() const { return extrapolation_; }
  bool by_sizes() const { return by_sizes_; }
  bool has_region() const { return has_region_; }
  // Whether the taps were placed at load: then they are final.
  bool known() const { return known_; }
  const std::vector<ResizeTaps>& taps() const { return taps_; }  // of every axis

  // Places the taps from the contents of roi, scales and sizes; of the last two the one that is there.
  // InvalidArgument for what does not give the result's shape. Allocates nothing if all is well.
  absl::Status Place(const void* region, const void* scales, const void* sizes);

 private:
  double Dim(size_t axis) const { return static_cast<double>(x_.shape[axis]); }
  double Region(const void* region, int64_t k) const;

  TensorType x_, y_;
  ResizeRule rule_;
  std::vector<int> axes_;  // in the order of scales and sizes
  std::string policy_;
  float extrapolation_ = 0;
  bool by_sizes_ = false, has_region_ = false, known_ = false;
  DType region_type_ = DType::kFloat32;
  std::vector<ResizeTaps> taps_;
};

}  // namespace pipec
