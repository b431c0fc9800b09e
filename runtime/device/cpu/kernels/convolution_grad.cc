// Gradients of Conv and ConvTranspose, which are each other's: the attributes are the forward op's, with the
// result's shape beside them.
//   ConvInputGrad (dY, W) -> (dX): what ConvTranspose does with the same windows, and the other way round.
//   ConvWeightGrad (dY, X) -> (dW), ConvTransposeWeightGrad likewise.
// float32 by oneDNN, dW of few windows as a matrix product; loops for float64. oneDNN shares the samples of dW
// out among the threads, so that its last bits depend on their number.
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/convolution.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/operands/sums.h"

namespace pipec::cpu {
namespace {

// dW[channel of Y, channel of X in its group, tap] = sum of dY[window] * X[where the tap reads], sample by
// sample, window by window. `x` has the places, `dy` the windows.
template <typename T>
void ConvolveForWeights(const Convolution& c, const T* dy, const T* x, T* dw, bool add) {
  const auto& [depth, height, width] = c.windows.axes;
  const int64_t rows = c.groups * c.y_channels * c.x_channels;
  ParallelFor(rows, internal::ConvolutionGrain(c, rows),
              [&, &depth = depth, &height = height, &width = width](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const int64_t y_channel = row / c.x_channels;
                  const int64_t x_channel = y_channel / c.y_channels * c.x_channels + row % c.x_channels;
                  T* to = dw + row * c.windows.taps();
                  for (int64_t kd = 0; kd < depth.kernel; ++kd) {
                    for (int64_t kh = 0; kh < height.kernel; ++kh) {
                      for (int64_t kw = 0; kw < width.kernel; ++kw) {
                        T sum{0};
                        for (int64_t sample = 0; sample < c.batch; ++sample) {
                          const T* const from =
                              dy + (sample * c.groups * c.y_channels + y_channel) * c.windows.windows();
                          const T* const plane =
                              x + (sample * c.groups * c.x_channels + x_channel) * c.windows.places();
                          for (int64_t d = depth.FirstWindow(kd); d < depth.EndWindow(kd); ++d) {
                            for (int64_t h = height.FirstWindow(kh); h < height.EndWindow(kh); ++h) {
                              const T* const line = from + (d * height.out + h) * width.out;
                              const T* const places =
                                  plane + ((depth.Start(d) + kd * depth.dilation) * height.in +
                                           height.Start(h) + kh * height.dilation) *
                                              width.in;
                              const int64_t place = kw * width.dilation - width.before;
                              for (int64_t i = width.FirstWindow(kw); i < width.EndWindow(kw); ++i)
                                sum += line[i] * places[i * width.stride + place];
                            }
                          }
                        }
                        *to = add ? *to + sum : sum;
                        ++to;
                      }
                    }
                  }
                }
              });
}

// The shape of the operand whose gradient is made.
Shape ResultShape(const KernelSpec& spec) {
  const std::vector<int64_t> dims = spec.attributes.Ints("shape");
  return {dims.begin(), dims.end()};
}

absl::Status CheckBoth(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const DType dtype = spec.inputs[0].type.dtype;
  RETURN_IF_ERROR(CheckInputType(spec, 1, dtype));
  return CheckOutput(spec, 0, {dtype, ResultShape(spec)});
}

// The convolution in the other direction through the same windows.
Convolution Turned(Convolution c) {
  std::swap(c.x_channels, c.y_channels);
  return c;
}

template <bool kTransposed>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareInputGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckBoth(spec));
  const TensorType &dy = spec.inputs[0].type, &w = spec.inputs[1].type;
  ASSIGN_OR_RETURN(const Convolution forward,
                   ReadConvolution(spec, ResultShape(spec), w.shape, dy.shape, kTransposed));
  const Convolution c = Turned(forward);
  if (IsOneDnnFloat(dy.dtype) && c.multiplications() > 0)
    return MakeOneDnnConvolution(c, dy.dtype, !kTransposed, /*bias=*/false);
  return ForFloats(spec, dy.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      constexpr auto kRun = kTransposed ? Convolve<T> : ConvolveTransposed<T>;
      const T* const no_bias = nullptr;
      kRun(c, Input<T>(arguments, 0), Input<T>(arguments, 1), no_bias, Output<T>(arguments, 0));
      return absl::OkStatus();
    });
  });
}

// Whether some tap of the windows meets padding only: its weight's gradient is 0.
bool HasIdleTaps(const Convolution& c) {
  for (int i = 3 - c.windows.rank; i < 3; ++i) {
    const WindowAxis& axis = c.windows.axes[i];
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
      bool meets = false;
      for (int64_t out = 0; out < axis.out && !meets; ++out) {
        const int64_t in = out * axis.stride - axis.before + tap * axis.dilation;
        meets = in >= 0 && in < axis.in;
      }
      if (!meets) return true;
    }
  }
  return false;
}

template <bool kTransposed>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareWeightGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckBoth(spec));
  const TensorType &dy = spec.inputs[0].type, &x = spec.inputs[1].type;
  ASSIGN_OR_RETURN(const Convolution forward,
                   ReadConvolution(spec, x.shape, ResultShape(spec), dy.shape, kTransposed));
  // W lies as if X, which has the windows of a transposed convolution, were its result.
  const Convolution c = kTransposed ? Turned(forward) : forward;
  constexpr int kDy = kTransposed ? 1 : 0;
  if (dy.dtype == DType::kFloat32 && c.multiplications() > 0 && HasFewWindows(c))
    return MakeAccumulating(spec, [&](bool add) { return MakeWeightGradientProduct(c, kDy, add); });
  // oneDNN 2.6 leaves what its scratch memory held before in the gradients of idle taps of 16-bit weights.
  if (dy.dtype != DType::kFloat32 && dy.dtype != DType::kFloat64 && HasIdleTaps(c))
    return absl::UnimplementedError(absl::StrCat("taps that meet padding only, in ", Name(dy.dtype)));
  if (IsOneDnnFloat(dy.dtype) && c.multiplications() > 0)
    return MakeAccumulating(spec, [&](bool add) { return MakeOneDnnWeightGradient(c, dy.dtype, kDy, add); });
  return ForFloats(spec, dy.dtype, [=, accumulates = spec.accumulates](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      const T *dy = Input<T>(arguments, 0), *x = Input<T>(arguments, 1);
      if (kTransposed) std::swap(dy, x);
      ConvolveForWeights(c, dy, x, Output<T>(arguments, 0), accumulates && !arguments.first_microbatch);
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterConvolutionGradKernels(KernelRegistry& registry) {
  registry.Add("ConvInputGrad", kPipecDomain, PrepareInputGrad<false>);
  registry.Add("ConvWeightGrad", kPipecDomain, PrepareWeightGrad<false>, /*adds=*/true);
  registry.Add("ConvTransposeInputGrad", kPipecDomain, PrepareInputGrad<true>);
  registry.Add("ConvTransposeWeightGrad", kPipecDomain, PrepareWeightGrad<true>, /*adds=*/true);
}

}  // namespace pipec::cpu
