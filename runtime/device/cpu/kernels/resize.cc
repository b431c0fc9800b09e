// Resize (X, roi?, scales?, sizes?) -> (Y): the axes one after the other.
// Nearest moves elements of any type, the other modes compute in float32 and
// float64.
#include "runtime/device/operands/resize.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/indexed_copy.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cpu {
namespace {

class ResizeKernel : public Kernel {
 public:
  ResizeKernel(const KernelSpec &spec, ResizeOperands operands)
      : x_(spec.inputs[0].type),
        y_(spec.outputs[0].type),
        operands_(std::move(operands)),
        copy_(x_.shape, y_.shape) {
    if (operands_.known()) SetCopy();
  }

  // Two tensors between the axes, each at most as large as the larger of both
  // forms of every axis.
  int64_t workspace_bytes() const override {
    if (operands_.rule().mode == ResizeMode::kNearest) return 0;
    int64_t most = SizeOf(x_.dtype);
    for (const ResizeTaps &taps : operands_.taps()) most *= std::max(taps.in(), taps.out());
    return 2 * ((most + 63) / 64 * 64);
  }

  absl::Status Launch(Stream &, const KernelArguments &arguments) override {
    if (!operands_.known()) {
      const bool by_sizes = operands_.by_sizes();
      RETURN_IF_ERROR(operands_.Place(operands_.has_region() ? arguments.inputs[1] : nullptr,
                                      by_sizes ? nullptr : arguments.inputs[2],
                                      by_sizes ? arguments.inputs[3] : nullptr));
      SetCopy();
    }
    if (operands_.rule().mode == ResizeMode::kNearest) {
      copy_.Run(SizeOf(x_.dtype), arguments.inputs[0], arguments.outputs[0]);
    } else if (x_.dtype == DType::kFloat32) {
      Interpolate<float>(arguments);
    } else {
      Interpolate<double>(arguments);
    }
    if (operands_.crops()) {
      if (x_.dtype == DType::kFloat64) {
        FillOutside<double>(arguments);
      } else {
        FillOutside<float>(arguments);
      }
    }
    return absl::OkStatus();
  }

 private:
  void SetCopy() {
    if (operands_.rule().mode != ResizeMode::kNearest) return;
    for (size_t axis = 0; axis < operands_.taps().size(); ++axis) {
      const ResizeTaps &taps = operands_.taps()[axis];
      for (int64_t at = 0; at < taps.out(); ++at) copy_.Set(static_cast<int>(axis), at, taps.index(at, 0));
    }
  }

  template <typename T>
  void Interpolate(const KernelArguments &arguments) const {
    const T *from = Input<T>(arguments, 0);
    T *const buffers[] = {static_cast<T *>(arguments.workspace),
                          static_cast<T *>(arguments.workspace) + workspace_bytes() / 2 / sizeof(T)};
    int last = -1, next = 0;
    for (size_t axis = 0; axis < operands_.taps().size(); ++axis) {
      if (!operands_.taps()[axis].identity()) last = static_cast<int>(axis);
    }
    if (last < 0) std::copy_n(from, x_.elements(), Output<T>(arguments, 0));
    Shape shape = x_.shape;
    for (int axis = 0; axis <= last; ++axis) {
      if (operands_.taps()[axis].identity()) continue;
      T *const to = axis == last ? Output<T>(arguments, 0) : buffers[next];
      const auto dims = absl::MakeSpan(shape);
      RunAxis(operands_.taps()[axis], NumElements(dims.first(axis)), NumElements(dims.subspan(axis + 1)),
              from, to);
      shape[axis] = operands_.taps()[axis].out();
      from = to;
      next = 1 - next;
    }
  }

  // (outer, in, inner) to (outer, out, inner).
  template <typename T>
  static void RunAxis(const ResizeTaps &taps, int64_t outer, int64_t inner, const T *x, T *y) {
    const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, inner * taps.width()));
    ParallelFor(outer * taps.out(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row % taps.out();
        const T *const from = x + row / taps.out() * taps.in() * inner;
        T *const to = y + row * inner;
        std::fill_n(to, inner, T{0});
        for (int64_t k = 0; k < taps.width(); ++k) {
          const T weight = static_cast<T>(taps.weight(at, k));
          const T *const line = from + taps.index(at, k) * inner;
          if (weight == 0) continue;
#pragma GCC ivdep
          for (int64_t i = 0; i < inner; ++i) to[i] += weight * line[i];
        }
      }
    });
  }

  template <typename T>
  void FillOutside(const KernelArguments &arguments) const {
    for (size_t axis = 0; axis < operands_.taps().size(); ++axis) {
      const auto dims = absl::MakeSpan(y_.shape);
      const int64_t outer = NumElements(dims.first(axis)), inner = NumElements(dims.subspan(axis + 1));
      for (int64_t at = 0; at < operands_.taps()[axis].out(); ++at) {
        if (!operands_.taps()[axis].outside(at)) continue;
        for (int64_t o = 0; o < outer; ++o) {
          std::fill_n(Output<T>(arguments, 0) + (o * operands_.taps()[axis].out() + at) * inner, inner,
                      static_cast<T>(operands_.extrapolation()));
        }
      }
    }
  }

  const TensorType x_, y_;
  ResizeOperands operands_;
  IndexedCopy copy_;  // nearest
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(ResizeOperands operands, ResizeOperands::Of(spec));
  return std::make_unique<ResizeKernel>(spec, std::move(operands));
}

}  // namespace

void RegisterResizeKernels(KernelRegistry &registry) { registry.Add("Resize", "", Prepare); }

}  // namespace pipec::cpu
