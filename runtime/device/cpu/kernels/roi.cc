// RoiAlign (X, rois, batch_indices) -> (Y) and MaxRoiPool (X, rois) -> (Y): a grid of values out of each
// region of interest. X (N, C, H, W); rois (R, 4) as x1, y1, x2, y2, MaxRoiPool's (R, 5) with the sample
// before them; Y (R, C, rows, columns).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/regions.h"

namespace pipec::cpu {
namespace {

absl::Status CheckSample(int64_t sample, int64_t region, int64_t samples) {
  if (sample >= 0 && sample < samples) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("region ", region, " is of sample ", sample, ", which is outside [0,", samples - 1, "]"));
}

// What a region covers along one axis of X, in places.
struct Side {
  double start = 0, bin = 0;  // where the first bin begins, its length
  int64_t points = 0;         // sampled in a bin

  double Point(int64_t at, int64_t k) const {
    return start + static_cast<double>(at) * bin +
           (static_cast<double>(k) + 0.5) * bin / static_cast<double>(points);
  }
};

Side SideOf(const RegionAlign& a, double from, double to, int64_t bins) {
  const double offset = a.half_pixel ? 0.5 : 0;
  double length = (to - from) * a.pooling.scale;
  if (!a.half_pixel) length = std::max(length, 1.0);
  Side side{.start = from * a.pooling.scale - offset, .bin = length / static_cast<double>(bins)};
  // Not more than can count: the rest lies outside of X or between its places.
  const double own = std::clamp(std::ceil(side.bin), 0.0, static_cast<double>(kMostRegionPlaces));
  side.points = a.points > 0 ? a.points : static_cast<int64_t>(own == own ? own : 0);
  return side;
}

// The two places next to a point and the weight of the second. A point more than one place outside has none.
struct Neighbours {
  bool inside = false;
  int64_t low = 0, high = 0;
  double weight = 0;

  Neighbours(double at, int64_t n) {
    if (!(at >= -1 && at <= static_cast<double>(n))) return;
    inside = true;
    at = std::max(at, 0.0);
    low = std::min(static_cast<int64_t>(at), n - 1);
    high = std::min(low + 1, n - 1);
    weight = low == n - 1 ? 0 : at - static_cast<double>(low);
  }
};

// The mean of the points, each interpolated; or the largest of all their weighted neighbours, as onnx's
// reference has it.
template <typename T>
T AlignedBin(const RegionAlign& a, const Side& rows, const Side& columns, int64_t row, int64_t column,
             const T* plane) {
  double sum = 0, most = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < rows.points; ++i) {
    const Neighbours y(rows.Point(row, i), a.pooling.height);
    for (int64_t j = 0; j < columns.points; ++j) {
      const Neighbours x(columns.Point(column, j), a.pooling.width);
      if (!y.inside || !x.inside) {
        most = std::max(most, 0.0);
        continue;
      }
      const T *const low = plane + y.low * a.pooling.width, *const high = plane + y.high * a.pooling.width;
      const double parts[] = {(1 - y.weight) * (1 - x.weight) * low[x.low],
                              (1 - y.weight) * x.weight * low[x.high],
                              y.weight * (1 - x.weight) * high[x.low], y.weight * x.weight * high[x.high]};
      sum += parts[0] + parts[1] + parts[2] + parts[3];
      most = std::max(most, *std::max_element(parts, parts + 4));
    }
  }
  const int64_t points = rows.points * columns.points;
  if (points == 0) return T{0};
  return static_cast<T>(a.maximum ? most : sum / static_cast<double>(points));
}

template <typename T>
absl::Status RunAlign(const RegionAlign& a, const KernelArguments& arguments) {
  const RegionPooling& p = a.pooling;
  const int64_t* const samples = Input<int64_t>(arguments, 2);
  for (int64_t region = 0; region < p.regions; ++region)
    RETURN_IF_ERROR(CheckSample(samples[region], region, p.samples));
  ParallelFor(p.planes(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t region = at / p.channels, channel = at % p.channels;
      const T* const roi = Input<T>(arguments, 1) + region * 4;
      const Side columns = SideOf(a, roi[0], roi[2], p.columns), rows = SideOf(a, roi[1], roi[3], p.rows);
      const T* const plane =
          Input<T>(arguments, 0) + (samples[region] * p.channels + channel) * p.height * p.width;
      T* y = Output<T>(arguments, 0) + at * p.rows * p.columns;
      for (int64_t row = 0; row < p.rows; ++row) {
        for (int64_t column = 0; column < p.columns; ++column)
          *y++ = AlignedBin(a, rows, columns, row, column, plane);
      }
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareAlign(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const RegionAlign align, RegionAlign::Of(spec));
  return ForFloats(spec, spec.inputs[0].type.dtype, [align](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [align](const KernelArguments& arguments) { return RunAlign<T>(align, arguments); });
  });
}

// The places of bin `at` of `bins`, [begin, end), of a region from place `from` to place `to`, both in it.
struct Bin {
  int64_t begin, end;
  Bin(double from, double to, int64_t at, int64_t bins, int64_t n) {
    const double length = std::max(to - from + 1, 1.0) / static_cast<double>(bins);
    const double most = static_cast<double>(n);
    begin = static_cast<int64_t>(std::clamp(std::floor(static_cast<double>(at) * length) + from, 0.0, most));
    end = static_cast<int64_t>(std::clamp(std::ceil(static_cast<double>(at + 1) * length) + from, 0.0, most));
  }
};

template <typename T>
absl::Status RunMax(const RegionPooling& p, const KernelArguments& arguments) {
  const T* const rois = Input<T>(arguments, 1);
  for (int64_t region = 0; region < p.regions; ++region) {
    for (int k = 0; k < 5; ++k) {
      if (!(std::abs(rois[region * 5 + k]) <= T{1e9}))
        return absl::InvalidArgumentError(absl::StrCat("region ", region, " has ", rois[region * 5 + k]));
    }
    RETURN_IF_ERROR(CheckSample(static_cast<int64_t>(rois[region * 5]), region, p.samples));
  }
  ParallelFor(p.planes(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t region = at / p.channels, channel = at % p.channels;
      const T* const roi = rois + region * 5;
      double corner[4];
      for (int k = 0; k < 4; ++k) corner[k] = std::round(roi[1 + k] * p.scale);
      const T* const plane =
          Input<T>(arguments, 0) + (static_cast<int64_t>(roi[0]) * p.channels + channel) * p.height * p.width;
      T* y = Output<T>(arguments, 0) + at * p.rows * p.columns;
      for (int64_t row = 0; row < p.rows; ++row) {
        const Bin rows(corner[1], corner[3], row, p.rows, p.height);
        for (int64_t column = 0; column < p.columns; ++column) {
          const Bin columns(corner[0], corner[2], column, p.columns, p.width);
          const bool empty = rows.begin >= rows.end || columns.begin >= columns.end;
          T most = empty ? T{0} : -std::numeric_limits<T>::infinity();
          for (int64_t i = rows.begin; i < rows.end; ++i) {
            for (int64_t j = columns.begin; j < columns.end; ++j)
              most = std::max(most, plane[i * p.width + j]);
          }
          *y++ = most;
        }
      }
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMax(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const RegionPooling pooling, MaxRoiPoolingOf(spec));
  return ForFloats(spec, spec.inputs[0].type.dtype, [pooling](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0,
                      [pooling](const KernelArguments& arguments) { return RunMax<T>(pooling, arguments); });
  });
}

}  // namespace

void RegisterRoiKernels(KernelRegistry& registry) {
  registry.Add("RoiAlign", "", PrepareAlign);
  registry.Add("MaxRoiPool", "", PrepareMax);
}

}  // namespace pipec::cpu
