// DFT (x, dft_length?, axis?) -> (y) and STFT (signal, frame_step, window?, frame_length?) -> (y), whose sizes are
// known at load: each bin is its sum, in float64. A thread a bin; of float32 and float64. A line of n takes n * n
// steps: these are the transforms of signal processing, not of convolutions of any length.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cuda {
namespace {

// Lines of `in` elements of `parts` numbers, `inner` apart, cut or filled up with zeros to n; `out` bins of each.
// Line l of `outer * inner` begins at element l / inner * in * inner + l % inner, or, for frames, (l / frames *
// places + l % frames * step).
struct Lines {
  int64_t count, in, n, out, inner;
  int64_t frames, places, step;  // frames 0: lines along an axis
  int parts_in, parts_out;
  bool inverse, mirrored;  // mirrored: the second half of the input is the first one's conjugate
};

template <typename T>
__global__ void __launch_bounds__(kThreads) Transform(const T* x, const T* window, T* y, const Lines lines) {
  const int64_t read = min(lines.in, lines.mirrored ? lines.n / 2 + 1 : lines.n);
  for (int64_t i = FirstItem(); i < lines.count * lines.out; i += ItemStride()) {
    // Neighbouring threads have neighbouring lines of one bin, or bins of one frame.
    int64_t line, bin, from, to;
    if (lines.frames > 0) {
      line = i / lines.out, bin = i - line * lines.out;
      from = line / lines.frames * lines.places + line % lines.frames * lines.step;
      to = i;
    } else {
      const int64_t row = i / lines.inner, column = i - row * lines.inner, outer = row / lines.out;
      bin = row - outer * lines.out;
      from = outer * lines.in * lines.inner + column;
      to = i;
    }
    double real = 0, imaginary = 0;
    for (int64_t k = 0; k < read; ++k) {
      const T* const at = x + (from + k * lines.inner) * lines.parts_in;
      double a = static_cast<double>(at[0]), b = lines.parts_in == 2 ? static_cast<double>(at[1]) : 0;
      if (window != nullptr) a *= static_cast<double>(window[k]), b *= static_cast<double>(window[k]);
      // exp(-2 pi i k bin / n), or + for the inverse; the product is taken modulo n so that it stays exact.
      const double angle = 2 * 3.14159265358979323846 *
                           (static_cast<double>(k * bin % lines.n) / static_cast<double>(lines.n));
      const double c = cos(angle), s = lines.inverse ? sin(angle) : -sin(angle);
      real += a * c - b * s;
      imaginary += a * s + b * c;
      if (lines.mirrored && k > 0 && 2 * k != lines.n) {  // its conjugate at n - k turns the other way
        real += a * c - b * s;
        imaginary -= a * s + b * c;
      }
    }
    const double scale = lines.inverse ? 1 / static_cast<double>(lines.n) : 1;
    y[to * lines.parts_out] = static_cast<T>(real * scale);
    if (lines.parts_out == 2) y[to * 2 + 1] = static_cast<T>(imaginary * scale);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTransform(const KernelSpec& spec, const Lines& lines,
                                                      int window) {
  return ForWideFloats(spec, spec.inputs[0].type.dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      const int64_t bins = lines.count * lines.out;
      if (bins == 0) return absl::OkStatus();
      return Launch(Transform<T>, BlocksFor(bins), kThreads, stream, Input<T>(arguments, 0),
                    window >= 0 ? Input<T>(arguments, window) : nullptr, Output<T>(arguments, 0), lines);
    });
  });
}

// One number of int32 or int64 that is known at load.
absl::StatusOr<int64_t> KnownInt(const KernelSpec& spec, int k) {
  const KernelOperand& operand = spec.inputs[k];
  if (!IsSmallInts(operand.type) || operand.type.elements() != 1)
    return Invalid(spec, absl::StrCat("input ", k, " is ", ToString(operand.type), ", wanted one integer"));
  if (operand.constant == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "node '", spec.name, "' (", spec.op, "): the CUDA device needs input ", k, " to be known at load"));
  }
  return ReadInts(operand.type, operand.constant)[0];
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareDft(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 3}));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  const int rank = static_cast<int>(x.shape.size());
  const bool inverse = spec.attributes.Int("inverse", 0) != 0,
             onesided = spec.attributes.Int("onesided", 0) != 0;
  if (rank < 2 || (x.shape.back() != 1 && x.shape.back() != 2))
    return Invalid(spec, absl::StrCat("x is ", ToString(x), ", wanted 1 or 2 numbers along the last axis"));
  if (onesided && !inverse && x.shape.back() == 2)
    return Invalid(spec, "onesided is for real x, not for complex");
  int64_t at = -2;
  if (Has(spec, 2)) {
    ASSIGN_OR_RETURN(at, KnownInt(spec, 2));
  }
  absl::StatusOr<int> axis = NormaliseAxis(at, rank);
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  if (*axis == rank - 1) return Invalid(spec, "axis is that of real and imaginary parts");
  int64_t n = onesided && inverse ? 2 * (x.shape[*axis] - 1) : x.shape[*axis];
  if (Has(spec, 1)) {
    ASSIGN_OR_RETURN(n, KnownInt(spec, 1));
  }
  const int parts_out = inverse && onesided ? 1 : 2;
  Shape wanted = x.shape;
  wanted[*axis] = onesided && !inverse ? n / 2 + 1 : n;
  wanted.back() = parts_out;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, wanted}));
  if (n < 1) return Invalid(spec, absl::StrCat("dft_length is ", n));
  const auto dims = absl::MakeSpan(x.shape);
  const int64_t inner = NumElements(dims.subspan(*axis + 1, rank - *axis - 2));
  Lines lines{NumElements(dims.first(*axis)) * inner, x.shape[*axis], n, y.shape[*axis], inner};
  lines.parts_in = static_cast<int>(x.shape.back());
  lines.parts_out = parts_out;
  lines.inverse = inverse;
  lines.mirrored = inverse && onesided;
  return MakeTransform(spec, lines, -1);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareStft(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 4}));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  const bool onesided = spec.attributes.Int("onesided", 1) != 0;
  if (x.shape.size() != 3 || (x.shape[2] != 1 && x.shape[2] != 2)) {
    return Invalid(spec, absl::StrCat("the signal is ", ToString(x), ", wanted (N, places, 1 or 2)"));
  }
  if (onesided && x.shape[2] == 2)
    return Invalid(spec, "onesided is for a real signal, not for a complex one");
  ASSIGN_OR_RETURN(const int64_t step, KnownInt(spec, 1));
  int64_t n = Has(spec, 2) ? spec.inputs[2].type.elements() : x.shape[1];
  if (Has(spec, 3)) {
    ASSIGN_OR_RETURN(n, KnownInt(spec, 3));
  }
  if (n < 1 || step < 1 || n > x.shape[1])
    return Invalid(spec, absl::StrCat("frames of ", n, " every ", step, " of ", x.shape[1], " places"));
  RETURN_IF_ERROR(CheckInput(spec, 2, {x.dtype, {n}}));
  const int64_t frames = (x.shape[1] - n) / step + 1, bins = onesided ? n / 2 + 1 : n;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, {x.shape[0], frames, bins, 2}}));
  Lines lines{x.shape[0] * frames, n, n, y.shape[2], 1, frames, x.shape[1], step};
  lines.parts_in = static_cast<int>(x.shape[2]);
  lines.parts_out = 2;
  return MakeTransform(spec, lines, Has(spec, 2) ? 2 : -1);
}

}  // namespace

void RegisterFourierKernels(KernelRegistry& registry) {
  registry.Add("DFT", "", PrepareDft);
  registry.Add("STFT", "", PrepareStft);
}

}  // namespace pipec::cuda
