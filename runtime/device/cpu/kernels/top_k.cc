// TopK (X, K) -> (values, indices) along an axis and Hardmax (X) -> (Y), whose
// 1 is where the first of the greatest is. Among equals the lower index comes
// first; NaN counts as the greatest, as in PyTorch.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cpu {
namespace {

struct Selection {
  AxisView x;  // the operand; the results have k in the axis' place
  int64_t k = 0;
  bool largest = true;
};

// `order` has room for a row of x for each row: the rank's workspace.
template <typename T>
void Loop(const Selection &selection, const T *x, int64_t *order, T *values, int64_t *indices) {
  const AxisView &view = selection.x;
  const int64_t n = view.length, k = selection.k, step = view.inner;
  ParallelFor(view.outer * view.inner, std::max<int64_t>(1, kElementGrain / 8 / std::max<int64_t>(n, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const T *const from = x + row / step * n * step + row % step;
                  int64_t *const places = order + row * n;
                  std::iota(places, places + n, int64_t{0});
                  const auto before = [&](int64_t a, int64_t b) {
                    const T left = from[a * step], right = from[b * step];
                    const bool left_nan = left != left, right_nan = right != right;
                    if (left_nan != right_nan) return selection.largest ? left_nan : right_nan;
                    if (left == right || left_nan) return a < b;
                    return selection.largest ? left > right : left < right;
                  };
                  // Neither takes memory, and the order is total, so that the result
                  // does not depend on how they sort.
                  std::nth_element(places, places + std::min(k, n), places + n, before);
                  std::sort(places, places + k, before);
                  const int64_t to = row / step * k * step + row % step;
                  for (int64_t i = 0; i < k; ++i) {
                    values[to + i * step] = from[places[i] * step];
                    indices[to + i * step] = places[i];
                  }
                }
              });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareTopK(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2, 2, 2}));
  const TensorType &x = spec.inputs[0].type;
  const int64_t attribute = spec.attributes.Int("axis", -1);
  absl::StatusOr<AxisView> view = ViewAlong(x.shape, attribute);
  if (!view.ok()) return Invalid(spec, view.status().message());
  const int axis =
      static_cast<int>(attribute < 0 ? attribute + static_cast<int64_t>(x.shape.size()) : attribute);
  RETURN_IF_ERROR(CheckInputElements(spec, 1, DType::kInt64, 1));
  // K itself is looked at when it runs: how much room there is says the
  // result's type.
  const Shape &y = spec.outputs[0].type.shape;
  if (y.size() != x.shape.size()) return Invalid(spec, absl::StrCat("output 0 has rank ", y.size()));
  Selection selection{*view, y[axis], spec.attributes.Int("largest", 1) != 0};
  if (selection.k > view->length) {
    return Invalid(spec, absl::StrCat("K is ", selection.k, ", the axis has ", view->length, " elements"));
  }
  Shape shape = x.shape;
  shape[axis] = selection.k;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, shape}));
  RETURN_IF_ERROR(CheckOutput(spec, 1, {DType::kInt64, shape}));
  auto kernel = ForType<std::unique_ptr<Kernel>>(Numbers(), x.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    const int64_t bytes = x.elements() * static_cast<int64_t>(sizeof(int64_t));
    return MakeKernel(bytes, [selection](const KernelArguments &arguments) -> absl::Status {
      if (const int64_t k = *Input<int64_t>(arguments, 1); k != selection.k) {
        return absl::InvalidArgumentError(
            absl::StrCat("K is ", k, ", but the results have room for ", selection.k));
      }
      Loop(selection, Input<T>(arguments, 0), static_cast<int64_t *>(arguments.workspace),
           Output<T>(arguments, 0), Output<int64_t>(arguments, 1));
      return absl::OkStatus();
    });
  });
  if (kernel == nullptr) return NoKernelFor(spec, x.dtype);
  return kernel;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareHardmax(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType &x = spec.inputs[0].type;
  absl::StatusOr<AxisView> along = ViewAlong(x.shape, spec.attributes.Int("axis", -1));
  if (!along.ok()) return Invalid(spec, along.status().message());
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  return ForFloats(spec, x.dtype, [view = *along](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [view](const KernelArguments &arguments) {
      const int64_t n = view.length, step = view.inner, grain = kElementGrain / std::max<int64_t>(n, 1);
      if (n == 0) return absl::OkStatus();
      ParallelFor(view.outer * step, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T *const from = Input<T>(arguments, 0) + row / step * n * step + row % step;
          T *const to = Output<T>(arguments, 0) + row / step * n * step + row % step;
          int64_t best = 0;
          for (int64_t i = 1; i < n; ++i) {
            if (from[i * step] > from[best * step]) best = i;
          }
          for (int64_t i = 0; i < n; ++i) to[i * step] = T{0};
          to[best * step] = T{1};
        }
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterTopKKernels(KernelRegistry &registry) {
  registry.Add("Hardmax", "", PrepareHardmax);
  registry.Add("TopK", "", PrepareTopK);
}

}  // namespace pipec::cpu
