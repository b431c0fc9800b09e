// GridSample read from an instruction.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

enum class GridMode { kNearest, kLinear, kCubic };
enum class GridPadding { kZeros, kBorder, kReflection };

inline constexpr int kGridAxes = 3;

struct GridSampling {
  int rank = 0;
  std::array<int64_t, kGridAxes> dims{};  // of X
  int64_t batch = 0, channels = 0, places = 1;
  GridMode mode = GridMode::kLinear;
  GridPadding padding = GridPadding::kZeros;
  bool align_corners = false;

  // Unimplemented for more spatial axes than kGridAxes; axes that X lacks come first and have one place.
  static absl::StatusOr<GridSampling> Of(const KernelSpec& spec);
};

}  // namespace pipec
