// GridSample (X, grid) -> (Y), RoiAlign (X, rois, batch_indices) -> (Y), MaxRoiPool (X, rois) -> (Y), DeformConv
// (X, W, offset, B?, mask?) -> (Y): values between the places of X, which are reckoned in float64 as on the CPU. A
// thread an element of Y; of float32 and float64.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/deform.h"
#include "runtime/device/operands/grid_sampling.h"
#include "runtime/device/operands/regions.h"

namespace pipec::cuda {
namespace {

template <typename V>
__device__ __forceinline__ V Held(V x, V low, V high) {
  return x < low ? low : x > high ? high : x;
}

struct Sampling {
  int rank;
  int64_t dims[kGridAxes];
  int64_t batch, channels, places;
  GridMode mode;
  GridPadding padding;
  bool align_corners;
};

// x thrown back at both ends as often as needed.
__device__ double Reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double rest = fmod(fabs(x - low), 2 * range);
  return low + (rest > range ? 2 * range - rest : rest);
}

// Cubic convolution with a = -0.75.
__device__ double Cubic(double distance) {
  constexpr double a = -0.75;
  const double x = fabs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

// A coordinate of -1 to 1 as a place of an axis, and how many taps lie around it.
struct GridPoint {
  double x, low, high;
  int taps;
};
__device__ GridPoint PointOf(const Sampling& s, int axis, double coordinate) {
  const double length = static_cast<double>(s.dims[axis]);
  GridPoint point;
  point.low = s.align_corners ? 0 : -0.5;
  point.high = s.align_corners ? length - 1 : length - 0.5;
  double x = s.align_corners ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
  constexpr double kFar = 1e9;  // so that it fits an integer; NaN is outside
  x = x == x ? Held(x, -kFar, kFar) : -kFar;
  if (x < point.low || x > point.high) {
    if (s.padding == GridPadding::kBorder) x = Held(x, 0.0, length - 1);
    if (s.padding == GridPadding::kReflection) x = Reflect(x, point.low, point.high);
  }
  point.x = x;
  point.taps = s.mode == GridMode::kNearest ? 1 : s.mode == GridMode::kLinear ? 2 : 4;
  return point;
}

// Tap k of a point: where, and with which weight; one outside has weight 0 where padding is zeros.
template <typename T>
struct Tap {
  int64_t index;
  T weight;
};
template <typename T>
__device__ Tap<T> TapOf(const Sampling& s, int axis, const GridPoint& point, int k) {
  const double floor_x = floor(point.x), t = point.x - floor_x;
  double at, weight;
  if (s.mode == GridMode::kNearest) {
    at = rint(point.x), weight = 1;
  } else if (s.mode == GridMode::kLinear) {
    at = floor_x + k, weight = k == 0 ? 1 - t : t;
  } else {
    at = floor_x + (k - 1), weight = Cubic((k - 1) - t);
  }
  if (s.padding == GridPadding::kReflection && (at < point.low || at > point.high))
    at = trunc(Reflect(at, point.low, point.high));
  const int64_t index = static_cast<int64_t>(at), n = s.dims[axis];
  const bool outside = index < 0 || index >= n;
  return {Held<int64_t>(index, 0, n - 1),
          static_cast<T>(outside && s.padding == GridPadding::kZeros ? 0.0 : weight)};
}

template <typename T>
__global__ void __launch_bounds__(kThreads) SampleGrid(const T* x, const T* grid, T* y, const Sampling s) {
  const int64_t volume = s.dims[0] * s.dims[1] * s.dims[2], all = s.batch * s.channels * s.places;
  for (int64_t element = FirstItem(); element < all; element += ItemStride()) {
    const int64_t plane = element / s.places, place = element - plane * s.places;
    const T* const coordinates = grid + (plane / s.channels * s.places + place) * s.rank;
    GridPoint points[kGridAxes];
#pragma unroll
    for (int axis = 0; axis < kGridAxes; ++axis) {
      points[axis] = {0, 0, 0, 1};  // an axis that X lacks
      if (axis >= kGridAxes - s.rank)
        points[axis] = PointOf(s, axis, static_cast<double>(coordinates[kGridAxes - 1 - axis]));
    }
    const T* const from = x + plane * volume;
    T sum = 0;
    for (int i = 0; i < points[0].taps; ++i) {
      const Tap<T> a = s.rank < 3 ? Tap<T>{0, T(1)} : TapOf<T>(s, 0, points[0], i);
      for (int j = 0; j < points[1].taps; ++j) {
        const Tap<T> b = s.rank < 2 ? Tap<T>{0, T(1)} : TapOf<T>(s, 1, points[1], j);
        const T weight = a.weight * b.weight;
        const T* const line = from + (a.index * s.dims[1] + b.index) * s.dims[2];
        for (int k = 0; k < points[2].taps; ++k) {
          const Tap<T> c = TapOf<T>(s, 2, points[2], k);
          sum += weight * c.weight * line[c.index];
        }
      }
    }
    y[element] = sum;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGridSample(const KernelSpec& spec, CudaContext&) {
  ASSIGN_OR_RETURN(const GridSampling read, GridSampling::Of(spec));
  Sampling s{.rank = read.rank};
  for (int i = 0; i < kGridAxes; ++i) s.dims[i] = read.dims[i];
  s.batch = read.batch, s.channels = read.channels, s.places = read.places;
  s.mode = read.mode, s.padding = read.padding, s.align_corners = read.align_corners;
  return ForWideFloats(spec, spec.inputs[0].type.dtype, [s](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [s](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      const int64_t all = s.batch * s.channels * s.places;
      if (all == 0) return absl::OkStatus();
      return Launch(SampleGrid<T>, BlocksFor(all), kThreads, stream, Input<T>(arguments, 0),
                    Input<T>(arguments, 1), Output<T>(arguments, 0), s);
    });
  });
}

// What a region covers along one axis of X, in places.
struct Side {
  double start, bin;  // where the first bin begins, its length
  int64_t points;     // sampled in a bin
  __device__ double Point(int64_t at, int64_t k) const {
    return start + static_cast<double>(at) * bin +
           (static_cast<double>(k) + 0.5) * bin / static_cast<double>(points);
  }
};
__device__ Side SideOf(const RegionAlign& a, double from, double to, int64_t bins) {
  double length = (to - from) * a.pooling.scale;
  if (!a.half_pixel) length = length < 1 ? 1.0 : length;
  Side side{from * a.pooling.scale - (a.half_pixel ? 0.5 : 0), length / static_cast<double>(bins), a.points};
  // Not more than can count: the rest lies outside of X or between its places.
  const double own = Held(ceil(side.bin), 0.0, static_cast<double>(kMostRegionPlaces));
  if (a.points == 0) side.points = static_cast<int64_t>(own == own ? own : 0.0);
  return side;
}

// The two places next to a point and the weight of the second. A point more than one place outside has none.
struct Neighbours {
  bool inside;
  int64_t low, high;
  double weight;
};
__device__ Neighbours NeighboursOf(double at, int64_t n) {
  if (!(at >= -1 && at <= static_cast<double>(n))) return {false, 0, 0, 0};
  at = at < 0 ? 0 : at;
  const int64_t low = min(static_cast<int64_t>(at), n - 1), high = min(low + 1, n - 1);
  return {true, low, high, low == n - 1 ? 0 : at - static_cast<double>(low)};
}

// The mean of the points, each interpolated; or the largest of all their weighted neighbours, as onnx's reference
// has it.
template <typename T>
__global__ void __launch_bounds__(kThreads) AlignRegions(const T* x, const T* rois, const int64_t* samples,
                                                         T* y, const RegionAlign a, const FaultSite fault) {
  const RegionPooling& p = a.pooling;
  const int64_t all = p.regions * p.channels * p.rows * p.columns;
  for (int64_t element = FirstItem(); element < all; element += ItemStride()) {
    const int64_t line = element / p.columns, column = element - line * p.columns, plane = line / p.rows;
    const int64_t row = line - plane * p.rows, region = plane / p.channels,
                  channel = plane - region * p.channels;
    const int64_t sample = samples[region];
    if (sample < 0 || sample >= p.samples) {
      LeaveNote(fault, sample, region);
      continue;
    }
    const T* const roi = rois + region * 4;
    const Side columns = SideOf(a, roi[0], roi[2], p.columns), rows = SideOf(a, roi[1], roi[3], p.rows);
    const T* const from = x + (sample * p.channels + channel) * p.height * p.width;
    double sum = 0, most = -INFINITY;
    for (int64_t i = 0; i < rows.points; ++i) {
      const Neighbours v = NeighboursOf(rows.Point(row, i), p.height);
      for (int64_t j = 0; j < columns.points; ++j) {
        const Neighbours h = NeighboursOf(columns.Point(column, j), p.width);
        if (!v.inside || !h.inside) {
          most = most < 0 ? 0 : most;
          continue;
        }
        const T *const low = from + v.low * p.width, *const high = from + v.high * p.width;
        const double a0 = (1 - v.weight) * (1 - h.weight) * low[h.low],
                     a1 = (1 - v.weight) * h.weight * low[h.high],
                     a2 = v.weight * (1 - h.weight) * high[h.low], a3 = v.weight * h.weight * high[h.high];
        sum += a0 + a1 + a2 + a3;
        most = fmax(most, fmax(fmax(a0, a1), fmax(a2, a3)));
      }
    }
    const int64_t points = rows.points * columns.points;
    y[element] = points == 0 ? T(0) : static_cast<T>(a.maximum ? most : sum / static_cast<double>(points));
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareRoiAlign(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const RegionAlign align, RegionAlign::Of(spec));
  const FaultSite fault =
      context.AddFaultSite(spec, "sample", absl::StrCat("in [0,", align.pooling.samples - 1, "]"));
  return ForWideFloats(spec, spec.inputs[0].type.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (align.pooling.elements() == 0) return absl::OkStatus();
      return Launch(AlignRegions<T>, BlocksFor(align.pooling.elements()), kThreads, stream,
                    Input<T>(arguments, 0), Input<T>(arguments, 1), Input<int64_t>(arguments, 2),
                    Output<T>(arguments, 0), align, fault);
    });
  });
}

// The places of bin `at` of `bins`, [begin, end), of a region from place `from` to place `to`, both in it.
struct Bin {
  int64_t begin, end;
};
__device__ Bin BinOf(double from, double to, int64_t at, int64_t bins, int64_t n) {
  const double whole = to - from + 1, length = (whole < 1 ? 1 : whole) / static_cast<double>(bins);
  const double most = static_cast<double>(n);
  return {static_cast<int64_t>(Held(floor(static_cast<double>(at) * length) + from, 0.0, most)),
          static_cast<int64_t>(Held(ceil(static_cast<double>(at + 1) * length) + from, 0.0, most))};
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    PoolRegions(const T* x, const T* rois, T* y, const RegionPooling p, const FaultSite fault) {
  const int64_t all = p.regions * p.channels * p.rows * p.columns;
  for (int64_t element = FirstItem(); element < all; element += ItemStride()) {
    const int64_t line = element / p.columns, column = element - line * p.columns, plane = line / p.rows;
    const int64_t row = line - plane * p.rows, region = plane / p.channels,
                  channel = plane - region * p.channels;
    const T* const roi = rois + region * 5;
    bool usable = true;
    for (int k = 0; k < 5; ++k) usable = usable && fabs(roi[k]) <= T(1e9);
    const int64_t sample = usable ? static_cast<int64_t>(roi[0]) : -1;
    if (sample < 0 || sample >= p.samples) {
      LeaveNote(fault, sample, region);
      continue;
    }
    double corner[4];
    for (int k = 0; k < 4; ++k) corner[k] = round(static_cast<double>(roi[1 + k]) * p.scale);
    const T* const from = x + (sample * p.channels + channel) * p.height * p.width;
    const Bin rows = BinOf(corner[1], corner[3], row, p.rows, p.height);
    const Bin columns = BinOf(corner[0], corner[2], column, p.columns, p.width);
    T most = rows.begin >= rows.end || columns.begin >= columns.end ? T(0) : static_cast<T>(-INFINITY);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const T value = from[i * p.width + j];
        most = most < value ? value : most;
      }
    }
    y[element] = most;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMaxRoiPool(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const RegionPooling pooling, MaxRoiPoolingOf(spec));
  const FaultSite fault =
      context.AddFaultSite(spec, "region of sample", absl::StrCat("in [0,", pooling.samples - 1, "]"));
  return ForWideFloats(spec, spec.inputs[0].type.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (pooling.elements() == 0) return absl::OkStatus();
      return Launch(PoolRegions<T>, BlocksFor(pooling.elements()), kThreads, stream, Input<T>(arguments, 0),
                    Input<T>(arguments, 1), Output<T>(arguments, 0), pooling, fault);
    });
  });
}

// DeformConv, as a kernel takes it.
struct Moved {
  int64_t rows_in, columns_in, rows_out, columns_out, kernel_rows, kernel_columns;
  int64_t row_stride, column_stride, row_dilation, column_dilation, row_before, column_before;
  int64_t samples, channels, filters, group, offset_group;
};

// X between its places; zeros around it.
template <typename T>
__device__ T Between(const Moved& d, const T* plane, double y, double x) {
  if (!(y > -1 && x > -1 && y < static_cast<double>(d.rows_in) && x < static_cast<double>(d.columns_in)))
    return T(0);
  const int64_t top = static_cast<int64_t>(floor(y)), left = static_cast<int64_t>(floor(x));
  const double down = y - static_cast<double>(top), right = x - static_cast<double>(left);
  double sum = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int64_t row = top + i, column = left + j;
      if (row < 0 || row >= d.rows_in || column < 0 || column >= d.columns_in) continue;
      sum += (i ? down : 1 - down) * (j ? right : 1 - right) *
             static_cast<double>(plane[row * d.columns_in + column]);
    }
  }
  return static_cast<T>(sum);
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) ConvolveMoved(const T* x, const T* w, const T* offset,
                                                          const T* bias, const T* mask, T* y, const Moved d) {
  const int64_t windows = d.rows_out * d.columns_out, taps = d.kernel_rows * d.kernel_columns;
  const int64_t channels = d.channels / d.group, filters = d.filters / d.group;
  for (int64_t element = FirstItem(); element < d.samples * d.filters * windows; element += ItemStride()) {
    const int64_t plane = element / windows, window = element - plane * windows;
    const int64_t sample = plane / d.filters, filter = plane - sample * d.filters;
    const int64_t row = window / d.columns_out, column = window - row * d.columns_out;
    T sum = bias == nullptr ? T(0) : bias[filter];
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t channel = filter / filters * channels + c;
      const int64_t moved_by = sample * d.offset_group + channel / (d.channels / d.offset_group);
      const T* const from = x + (sample * d.channels + channel) * d.rows_in * d.columns_in;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t place = moved_by * taps + tap, tap_row = tap / d.kernel_columns;
        const T* const by = offset + 2 * place * windows + window;
        const double at_row =
            static_cast<double>(row * d.row_stride - d.row_before + tap_row * d.row_dilation);
        const double at_column = static_cast<double>(column * d.column_stride - d.column_before +
                                                     (tap - tap_row * d.kernel_columns) * d.column_dilation);
        T value = Between(d, from, at_row + static_cast<double>(by[0]),
                          at_column + static_cast<double>(by[windows]));
        if (mask != nullptr) value *= mask[place * windows + window];
        sum += value * w[(filter * channels + c) * taps + tap];
      }
    }
    y[element] = sum;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareDeformConv(const KernelSpec& spec, CudaContext&) {
  ASSIGN_OR_RETURN(const Deform d, Deform::Of(spec));
  const Moved moved{d.rows.in,        d.columns.in,     d.rows.out,       d.columns.out,   d.rows.kernel,
                    d.columns.kernel, d.rows.stride,    d.columns.stride, d.rows.dilation, d.columns.dilation,
                    d.rows.before,    d.columns.before, d.samples,        d.channels,      d.filters,
                    d.group,          d.offset_group};
  return ForWideFloats(
      spec, spec.inputs[0].type.dtype,
      [=, has_bias = Has(spec, 3), has_mask = Has(spec, 4), all = spec.outputs[0].type.elements()](auto tag) {
        using T = typename decltype(tag)::type;
        return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
          if (all == 0) return absl::OkStatus();
          return Launch(ConvolveMoved<T>, BlocksFor(all), kThreads, stream, Input<T>(arguments, 0),
                        Input<T>(arguments, 1), Input<T>(arguments, 2),
                        has_bias ? Input<T>(arguments, 3) : nullptr,
                        has_mask ? Input<T>(arguments, 4) : nullptr, Output<T>(arguments, 0), moved);
        });
      });
}

}  // namespace

void RegisterSamplingKernels(KernelRegistry& registry) {
  registry.Add("DeformConv", "", PrepareDeformConv);
  registry.Add("GridSample", "", PrepareGridSample);
  registry.Add("MaxRoiPool", "", PrepareMaxRoiPool);
  registry.Add("RoiAlign", "", PrepareRoiAlign);
}

}  // namespace pipec::cuda
