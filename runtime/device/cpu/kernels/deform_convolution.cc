// DeformConv (X, W, offset, B?, mask?) -> (Y): a convolution whose taps read X, interpolated, at places
// moved by `offset` and weighted by `mask`. X (N, C, H, W), W (M, C / group, kh, kw), offset (N, groups *
// kh * kw * 2, rows, columns) as y, x; mask (N, groups * kh * kw, rows, columns); Y (N, M, rows, columns).
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/deform.h"

namespace pipec::cpu {
namespace {

// X between its places; zeros around it.
template <typename T>
T Between(const Deform& d, const T* plane, double y, double x) {
  if (!(y > -1 && x > -1 && y < static_cast<double>(d.rows.in) && x < static_cast<double>(d.columns.in)))
    return T{0};
  const int64_t top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
  const double down = y - static_cast<double>(top), right = x - static_cast<double>(left);
  double sum = 0;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      const int64_t row = top + i, column = left + j;
      if (row < 0 || row >= d.rows.in || column < 0 || column >= d.columns.in) continue;
      sum += (i ? down : 1 - down) * (j ? right : 1 - right) *
             static_cast<double>(plane[row * d.columns.in + column]);
    }
  }
  return static_cast<T>(sum);
}

template <typename T>
void RunWindow(const Deform& d, int64_t sample, int64_t window, const KernelArguments& arguments) {
  const int64_t row = window / d.columns.out, column = window % d.columns.out;
  const T *const weights = Input<T>(arguments, 1), *const bias = Input<T>(arguments, 3),
                 *const mask = Input<T>(arguments, 4);
  T* const y = Output<T>(arguments, 0) + sample * d.filters * d.windows() + window;
  for (int64_t m = 0; m < d.filters; ++m) y[m * d.windows()] = bias ? bias[m] : T{0};
  const int64_t channels = d.channels / d.group, filters = d.filters / d.group;
  for (int64_t c = 0; c < d.channels; ++c) {
    const int64_t moved_by = sample * d.offset_group + c / (d.channels / d.offset_group);
    const T* const plane = Input<T>(arguments, 0) + (sample * d.channels + c) * d.places();
    for (int64_t tap = 0; tap < d.taps(); ++tap) {
      const int64_t place = moved_by * d.taps() + tap;
      const T* const offset = Input<T>(arguments, 2) + 2 * place * d.windows() + window;
      const double at_row = static_cast<double>(d.rows.Start(row) + tap / d.columns.kernel * d.rows.dilation),
                   at_column = static_cast<double>(d.columns.Start(column) +
                                                   tap % d.columns.kernel * d.columns.dilation);
      T value = Between(d, plane, at_row + static_cast<double>(offset[0]),
                        at_column + static_cast<double>(offset[d.windows()]));
      if (mask) value *= mask[place * d.windows() + window];
      const int64_t first = c / channels * filters;
      for (int64_t m = first; m < first + filters; ++m)
        y[m * d.windows()] += value * weights[(m * channels + c % channels) * d.taps() + tap];
    }
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const Deform d, Deform::Of(spec));
  const int inputs = static_cast<int>(spec.inputs.size());
  return ForFloats(spec, spec.inputs[0].type.dtype, [d, inputs](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [d, inputs](const KernelArguments& given) {
      const void* operands[5] = {};
      std::copy_n(given.inputs, inputs, operands);
      const KernelArguments arguments{operands, given.outputs, given.scalars, given.workspace};
      ParallelFor(d.samples * d.windows(), 8, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at)
          RunWindow<T>(d, at / d.windows(), at % d.windows(), arguments);
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterDeformConvolutionKernels(KernelRegistry& registry) { registry.Add("DeformConv", "", Prepare); }

}  // namespace pipec::cpu
