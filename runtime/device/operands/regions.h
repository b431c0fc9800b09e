// RoiAlign and MaxRoiPool read from an instruction: a grid of values out of each region of interest.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

// The most places of a side of Y, and samples of a side of a bin.
inline constexpr int64_t kMostRegionPlaces = int64_t{1} << 16;

struct RegionPooling {
  int64_t samples = 0, channels = 0, height = 0, width = 0;  // of X
  int64_t regions = 0, rows = 0, columns = 0;
  double scale = 1;

  int64_t planes() const { return regions * channels; }
  int64_t elements() const { return planes() * rows * columns; }
};

struct RegionAlign {
  RegionPooling pooling;
  bool half_pixel = true, maximum = false;
  int64_t points = 0;  // of a bin's side; 0: as many as it has places

  static absl::StatusOr<RegionAlign> Of(const KernelSpec& spec);
};

absl::StatusOr<RegionPooling> MaxRoiPoolingOf(const KernelSpec& spec);

}  // namespace pipec
