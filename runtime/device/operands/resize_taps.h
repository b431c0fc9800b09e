// Which elements of an axis, with which weights, make an element of the resized
// axis: ONNX Resize, one axis at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

enum class ResizeMode { kNearest, kLinear, kCubic };
enum class Coordinates {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfCropAndResize
};
enum class NearestMode { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

struct ResizeRule {
  ResizeMode mode = ResizeMode::kNearest;
  Coordinates coordinates = Coordinates::kHalfPixel;
  NearestMode nearest = NearestMode::kRoundPreferFloor;
  double cubic_a = -0.75;
  bool exclude_outside = false, antialias = false;
};

// From the attributes; InvalidArgument for an unknown word.
absl::StatusOr<ResizeRule> ReadResizeRule(const KernelSpec &spec);

// The taps of one axis: `width` for each of `out` places.
class ResizeTaps {
 public:
  // Room for any scale that makes `out` places of `in`.
  ResizeTaps(const ResizeRule &rule, int64_t in, int64_t out);

  // scale: out over in, as the operands give it; the region of the axis that
  // counts is [begin, end] of its length. Allocates nothing. InvalidArgument
  // for a scale that is no positive number or needs more taps than there is
  // room for.
  absl::Status Place(double scale, double begin, double end);

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  int64_t width() const { return width_; }
  // Of place `at`, tap k.
  int64_t index(int64_t at, int64_t k) const { return indices_[at * width_ + k]; }
  double weight(int64_t at, int64_t k) const { return weights_[at * width_ + k]; }
  // Whether the place is outside the operand and gets the extrapolation value
  // (tf_crop_and_resize).
  bool outside(int64_t at) const { return outside_[at]; }
  // Whether every place is itself.
  bool identity() const { return identity_; }

 private:
  double Coordinate(int64_t at, double scale, double begin, double end) const;
  // The weights of `taps` elements from `first` on, by their distance from x.
  void Weigh(int64_t at, double x, double scale, int64_t first, int64_t taps);

  const ResizeRule rule_;
  const int64_t in_, out_;
  int64_t room_ = 1, width_ = 1;
  std::vector<int64_t> indices_;
  std::vector<double> weights_;
  std::vector<bool> outside_;
  bool identity_ = false;
};

}  // namespace pipec
