// STFT (signal, frame_step, window?, frame_length?) -> (y): the Fourier transforms of frames of a signal,
// each multiplied by the window. signal (N, places, 1 or 2), window (frame), y (N, frames, bins, 2).
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/fourier.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/slots.h"

namespace pipec::cpu {
namespace {

using Complex = Fourier::Complex;

struct Frames {
  int64_t samples = 0, places = 0, parts = 1;  // of the signal
  int64_t frames = 0, bins = 0;
  bool has_window = false, has_length = false;
  TensorType step, length;
  std::vector<Fourier> transforms;  // of the lengths that lead to `bins` bins

  // By the frame's length, which the window has too; without either it is the signal's.
  const Fourier* Find(const KernelArguments& arguments, int64_t window) const {
    const int64_t n = has_length ? ReadInts(length, arguments.inputs[3])[0] : has_window ? window : places;
    for (const Fourier& transform : transforms) {
      if (transform.n() == n && (!has_window || window == n)) return &transform;
    }
    return nullptr;
  }
};

template <typename T>
absl::Status Run(const Frames& f, const Slots& slots, int64_t window_length,
                 const KernelArguments& arguments) {
  const Fourier* const transform = f.Find(arguments, window_length);
  if (transform == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat("the frame's length does not fit the window or ", f.bins, " bins"));
  const int64_t n = transform->n(), step = ReadInts(f.step, arguments.inputs[1])[0];
  if (step < 1) return absl::InvalidArgumentError(absl::StrCat("frame_step is ", step));
  if (f.places < n || (f.places - n) / step + 1 != f.frames) {
    return absl::InvalidArgumentError(
        absl::StrCat(f.places, " places do not hold ", f.frames, " frames of ", n, " every ", step));
  }
  const T* const window = f.has_window ? Input<T>(arguments, 2) : nullptr;
  slots.Run(arguments.workspace, [&](int64_t at, void* memory) {
    Complex* const line = static_cast<Complex*>(memory);
    const T* const x = Input<T>(arguments, 0) + (at / f.frames * f.places + at % f.frames * step) * f.parts;
    for (int64_t k = 0; k < n; ++k) {
      const double weight = window ? static_cast<double>(window[k]) : 1;
      line[k] = {x[k * f.parts] * weight, f.parts == 2 ? x[k * 2 + 1] * weight : 0};
    }
    transform->Run(/*inverse=*/false, line, line + n);
    T* const y = Output<T>(arguments, 0) + at * f.bins * 2;
    for (int64_t k = 0; k < f.bins; ++k) {
      y[2 * k] = static_cast<T>(line[k].real());
      y[2 * k + 1] = static_cast<T>(line[k].imag());
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 4}));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  const bool onesided = spec.attributes.Int("onesided", 1) != 0;
  Frames f;
  f.has_window = Has(spec, 2), f.has_length = Has(spec, 3);
  if (x.shape.size() != 3 || (x.shape[2] != 1 && x.shape[2] != 2) || y.shape.size() != 4 ||
      y.shape[0] != x.shape[0] || y.shape[1] < 1 || y.shape[2] < 1 || y.shape[3] != 2) {
    return Invalid(spec, absl::StrCat("the signal is ", ToString(x), ", the result ", ToString(y),
                                      ", wanted (N, places, 1 or 2) and (N, frames, bins, 2)"));
  }
  if (onesided && x.shape[2] == 2)
    return Invalid(spec, "onesided is for a real signal, not for a complex one");
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y.shape}));
  for (int k : {1, 3}) {
    if (Has(spec, k) && (!IsSmallInts(spec.inputs[k].type) || spec.inputs[k].type.elements() != 1))
      return Invalid(
          spec, absl::StrCat("input ", k, " is ", ToString(spec.inputs[k].type), ", wanted one integer"));
  }
  f.step = spec.inputs[1].type;
  if (f.has_length) f.length = spec.inputs[3].type;
  int64_t window = 0;
  if (f.has_window) {
    window = spec.inputs[2].type.elements();
    RETURN_IF_ERROR(CheckInput(spec, 2, {x.dtype, {window}}));
  }
  f.samples = x.shape[0], f.places = x.shape[1], f.parts = x.shape[2];
  f.frames = y.shape[1], f.bins = y.shape[2];
  const int64_t first = onesided ? 2 * (f.bins - 1) : f.bins, last = onesided ? first + 1 : first;
  int64_t elements = 0;
  for (int64_t n = std::max<int64_t>(1, first); n <= last; ++n) {
    f.transforms.emplace_back(n);
    elements = std::max(elements, n + f.transforms.back().scratch_elements());
  }
  const Slots slots(f.samples * f.frames, elements * static_cast<int64_t>(sizeof(Complex)));
  return ForFloats(spec, x.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(slots.workspace_bytes(),
                      [=](const KernelArguments& arguments) { return Run<T>(f, slots, window, arguments); });
  });
}

}  // namespace

void RegisterStftKernels(KernelRegistry& registry) { registry.Add("STFT", "", Prepare); }

}  // namespace pipec::cpu
