// GridSample (X, grid) -> (Y): X (N, C, places), grid (N, places of Y, axes)
// with the coordinates of each place of Y in X, -1 to 1, the last axis of X
// first. Each axis gives a few taps; a place's value is the sum over all their
// combinations.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/grid_sampling.h"

namespace pipec::cpu {
namespace {

constexpr int kMostTaps = 4;

// The taps of one axis. A tap outside has weight 0.
template <typename T>
struct Taps {
  int count = 0;
  std::array<int64_t, kMostTaps> index;
  std::array<T, kMostTaps> weight;
};

// x thrown back at both ends as often as needed.
double Reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double rest = std::fmod(std::fabs(x - low), 2 * range);
  return low + (rest > range ? 2 * range - rest : rest);
}

// Cubic convolution with a = -0.75, for the taps at distances 1 + t, t, 1 - t,
// 2 - t.
double Cubic(double distance) {
  constexpr double a = -0.75;
  const double x = std::fabs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

template <typename T>
Taps<T> TapsOf(const GridSampling &s, int axis, double coordinate) {
  const int64_t n = s.dims[axis];
  const double length = static_cast<double>(n);
  const double low = s.align_corners ? 0 : -0.5, high = s.align_corners ? length - 1 : length - 0.5;
  double x = s.align_corners ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
  constexpr double kFar = 1e9;  // so that it fits an integer; NaN is outside
  x = x == x ? std::clamp(x, -kFar, kFar) : -kFar;
  if (x < low || x > high) {
    if (s.padding == GridPadding::kBorder) x = std::clamp(x, 0.0, length - 1);
    if (s.padding == GridPadding::kReflection) x = Reflect(x, low, high);
  }
  Taps<T> taps;
  const auto add = [&](double at, double weight) {
    if (s.padding == GridPadding::kReflection && (at < low || at > high))
      at = std::trunc(Reflect(at, low, high));
    const int64_t index = static_cast<int64_t>(at);
    const bool outside = index < 0 || index >= n;
    taps.index[taps.count] = std::clamp<int64_t>(index, 0, n - 1);
    taps.weight[taps.count++] = static_cast<T>(outside && s.padding == GridPadding::kZeros ? 0 : weight);
  };
  if (s.mode == GridMode::kNearest) {
    add(std::nearbyint(x), 1);
    return taps;
  }
  const double floor = std::floor(x), t = x - floor;
  if (s.mode == GridMode::kLinear) {
    add(floor, 1 - t);
    add(floor + 1, t);
  } else {
    for (int k = -1; k <= 2; ++k) add(floor + k, Cubic(k - t));
  }
  return taps;
}

template <typename T>
T SampleAt(const GridSampling &s, const std::array<Taps<T>, kGridAxes> &taps, const T *x) {
  T sum = 0;
  // Axes that X lacks come first and have one tap of weight 1.
  for (int i = 0; i < taps[0].count; ++i) {
    for (int j = 0; j < taps[1].count; ++j) {
      const T weight = taps[0].weight[i] * taps[1].weight[j];
      const T *const line = x + (taps[0].index[i] * s.dims[1] + taps[1].index[j]) * s.dims[2];
      for (int k = 0; k < taps[2].count; ++k) sum += weight * taps[2].weight[k] * line[taps[2].index[k]];
    }
  }
  return sum;
}

template <typename T>
void Run(const GridSampling &s, const T *x, const T *grid, T *y) {
  const int64_t volume = s.dims[0] * s.dims[1] * s.dims[2];
  ParallelFor(s.batch * s.places, std::max<int64_t>(1, 1024 / std::max<int64_t>(1, s.channels)),
              [&](int64_t begin, int64_t end) {
                for (int64_t at = begin; at < end; ++at) {
                  const int64_t sample = at / s.places, place = at % s.places;
                  std::array<Taps<T>, kGridAxes> taps;
                  for (int axis = 0; axis < kGridAxes; ++axis) {
                    if (axis < kGridAxes - s.rank) {
                      taps[axis].count = 1, taps[axis].index[0] = 0, taps[axis].weight[0] = T{1};
                    } else {
                      const T coordinate = grid[at * s.rank + (kGridAxes - 1 - axis)];
                      taps[axis] = TapsOf<T>(s, axis, static_cast<double>(coordinate));
                    }
                  }
                  for (int64_t c = 0; c < s.channels; ++c) {
                    const int64_t plane = sample * s.channels + c;
                    y[plane * s.places + place] = SampleAt(s, taps, x + plane * volume);
                  }
                }
              });
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(const GridSampling s, GridSampling::Of(spec));
  return ForFloats(spec, spec.inputs[0].type.dtype, [s](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [s](const KernelArguments &arguments) {
      Run(s, Input<T>(arguments, 0), Input<T>(arguments, 1), Output<T>(arguments, 0));
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterGridSampleKernels(KernelRegistry &registry) { registry.Add("GridSample", "", Prepare); }

}  // namespace pipec::cpu
