#include "runtime/device/operands/resize_taps.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {
namespace {

template <typename E, size_t kN>
absl::Status ReadWord(const KernelSpec &spec, absl::string_view attribute,
                      const std::pair<absl::string_view, E> (&words)[kN], E &value) {
  const std::string word = spec.attributes.String(attribute, words[0].first);
  for (const auto &[name, meaning] : words) {
    if (name != word) continue;
    value = meaning;
    return absl::OkStatus();
  }
  return Invalid(spec, absl::StrCat(attribute, " is '", word, "', which is not known"));
}

// How far from x an element still counts, in elements of the smaller of both
// grids.
double Support(ResizeMode mode) { return mode == ResizeMode::kCubic ? 2 : 1; }

double Kernel1d(const ResizeRule &rule, double distance) {
  const double x = std::fabs(distance), a = rule.cubic_a;
  if (rule.mode == ResizeMode::kLinear) return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

}  // namespace

absl::StatusOr<ResizeRule> ReadResizeRule(const KernelSpec &spec) {
  ResizeRule rule;
  static constexpr std::pair<absl::string_view, ResizeMode> kModes[] = {
      {"nearest", ResizeMode::kNearest}, {"linear", ResizeMode::kLinear}, {"cubic", ResizeMode::kCubic}};
  static constexpr std::pair<absl::string_view, Coordinates> kCoordinates[] = {
      {"half_pixel", Coordinates::kHalfPixel},
      {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric},
      {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
      {"align_corners", Coordinates::kAlignCorners},
      {"asymmetric", Coordinates::kAsymmetric},
      {"tf_crop_and_resize", Coordinates::kTfCropAndResize}};
  static constexpr std::pair<absl::string_view, NearestMode> kNearest[] = {
      {"round_prefer_floor", NearestMode::kRoundPreferFloor},
      {"round_prefer_ceil", NearestMode::kRoundPreferCeil},
      {"floor", NearestMode::kFloor},
      {"ceil", NearestMode::kCeil}};
  RETURN_IF_ERROR(ReadWord(spec, "mode", kModes, rule.mode));
  RETURN_IF_ERROR(ReadWord(spec, "coordinate_transformation_mode", kCoordinates, rule.coordinates));
  RETURN_IF_ERROR(ReadWord(spec, "nearest_mode", kNearest, rule.nearest));
  rule.cubic_a = spec.attributes.Float("cubic_coeff_a", -0.75f);
  rule.exclude_outside = spec.attributes.Int("exclude_outside", 0) != 0;
  rule.antialias = spec.attributes.Int("antialias", 0) != 0;
  return rule;
}

ResizeTaps::ResizeTaps(const ResizeRule &rule, int64_t in, int64_t out) : rule_(rule), in_(in), out_(out) {
  if (rule.mode != ResizeMode::kNearest) {
    room_ = static_cast<int64_t>(2 * Support(rule.mode));
    if (rule.antialias && out > 0) {
      // The result has floor(in * scale) places, so that scale is at least out
      // / in.
      const double stretch = std::max(1.0, static_cast<double>(in) / static_cast<double>(out));
      room_ = 2 * static_cast<int64_t>(std::ceil(Support(rule.mode) * stretch)) + 2;
    }
  }
  indices_.resize(out * room_);
  weights_.resize(out * room_);
  outside_.resize(out);
}

double ResizeTaps::Coordinate(int64_t at, double scale, double begin, double end) const {
  const double x = static_cast<double>(at), in = static_cast<double>(in_), length = scale * in;
  switch (rule_.coordinates) {
    case Coordinates::kHalfPixel:
      return (x + 0.5) / scale - 0.5;
    case Coordinates::kHalfPixelSymmetric:
      return in / 2 * (1 - static_cast<double>(out_) / length) + (x + 0.5) / scale - 0.5;
    case Coordinates::kPytorchHalfPixel:
      return out_ == 1 ? -0.5 : (x + 0.5) / scale - 0.5;
    case Coordinates::kAlignCorners:
      return length == 1 ? 0 : x * (in - 1) / (length - 1);
    case Coordinates::kAsymmetric:
      return x / scale;
    case Coordinates::kTfCropAndResize:
      return begin * (in - 1) +
             (length == 1 ? (end - begin) * (in - 1) / 2 : x * (end - begin) * (in - 1) / (length - 1));
  }
  return 0;
}

void ResizeTaps::Weigh(int64_t at, double x, double scale, int64_t first, int64_t taps) {
  double sum = 0;
  for (int64_t k = 0; k < taps; ++k) {
    double weight = Kernel1d(rule_, (static_cast<double>(first + k) - x) * scale);
    if (rule_.exclude_outside && (first + k < 0 || first + k >= in_)) weight = 0;
    indices_[at * width_ + k] = std::clamp<int64_t>(first + k, 0, in_ - 1);
    weights_[at * width_ + k] = weight;
    sum += weight;
  }
  if ((!rule_.exclude_outside && !rule_.antialias) || sum == 0) return;
  for (int64_t k = 0; k < taps; ++k) weights_[at * width_ + k] /= sum;
}

absl::Status ResizeTaps::Place(double scale, double begin, double end) {
  constexpr double kFar = 1e15;  // beyond it neighbouring places are no longer told apart
  if (!(scale > 0) || !(scale < kFar) || !(std::fabs(begin) < kFar) || !(std::fabs(end) < kFar)) {
    return absl::InvalidArgumentError(absl::StrCat("scale ", scale, " of the region from ", begin, " to ",
                                                   end, ", wanted positive and finite"));
  }
  const double density = rule_.antialias ? std::min(scale, 1.0) : 1;
  if (rule_.mode != ResizeMode::kNearest) {
    const double half = -std::floor(-Support(rule_.mode) / density);
    if (half * 2 > static_cast<double>(room_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("scale ", scale, " gives more than the ", out_, " places that output 0 has"));
    }
    width_ = 2 * static_cast<int64_t>(half);
  }
  identity_ = in_ == out_;
  for (int64_t at = 0; at < out_; ++at) {
    const double x = Coordinate(at, scale, begin, end);
    outside_[at] =
        rule_.coordinates == Coordinates::kTfCropAndResize && (x < 0 || x > static_cast<double>(in_ - 1));
    const double low = std::floor(std::clamp(x, -kFar, kFar)), ratio = x - low;
    const int64_t floor = static_cast<int64_t>(low);
    if (rule_.mode == ResizeMode::kNearest) {
      const bool up = rule_.nearest == NearestMode::kCeil               ? ratio > 0
                      : rule_.nearest == NearestMode::kFloor            ? false
                      : rule_.nearest == NearestMode::kRoundPreferFloor ? ratio > 0.5
                                                                        : ratio >= 0.5;
      indices_[at] = std::clamp<int64_t>(floor + (up ? 1 : 0), 0, in_ - 1);
      weights_[at] = 1;
      identity_ = identity_ && indices_[at] == at && !outside_[at];
    } else {
      Weigh(at, x, density, floor - width_ / 2 + 1, width_);
      identity_ = identity_ && ratio == 0 && floor == at && density == 1;
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec
