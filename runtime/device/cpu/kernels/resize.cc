// Resize (X, roi?, scales?, sizes?) -> (Y): the axes one after the other.
// Nearest moves elements of any type, the other modes compute in float32 and
// float64.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/indexed_copy.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/resize_taps.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cpu {
namespace {

class ResizeKernel : public Kernel {
 public:
  ResizeKernel(const KernelSpec &spec, const ResizeRule &rule, std::vector<int> axes)
      : x_(spec.inputs[0].type),
        y_(spec.outputs[0].type),
        rule_(rule),
        axes_(std::move(axes)),
        policy_(spec.attributes.String("keep_aspect_ratio_policy", "stretch")),
        extrapolation_(spec.attributes.Float("extrapolation_value", 0)),
        by_sizes_(Has(spec, 3)),
        has_region_(Has(spec, 1) && rule.coordinates == Coordinates::kTfCropAndResize),
        copy_(x_.shape, y_.shape) {
    if (has_region_) region_type_ = spec.inputs[1].type.dtype;
    for (size_t i = 0; i < x_.shape.size(); ++i) taps_.emplace_back(rule, x_.shape[i], y_.shape[i]);
  }

  // From the contents of roi, scales and sizes.
  absl::Status Place(const void *region, const void *scales, const void *sizes) {
    const int64_t n = static_cast<int64_t>(axes_.size());
    double common = 0;  // the scale of all axes where the aspect ratio is kept
    for (int64_t i = 0; i < n && by_sizes_; ++i) {
      const double own = static_cast<double>(static_cast<const int64_t *>(sizes)[i]) / Dim(axes_[i]);
      common = i == 0 ? own : policy_ == "not_larger" ? std::min(common, own) : std::max(common, own);
    }
    for (size_t axis = 0; axis < taps_.size(); ++axis) {
      const int64_t k = std::find(axes_.begin(), axes_.end(), static_cast<int>(axis)) - axes_.begin();
      double scale = 1, begin = 0, end = 1;
      if (k < n && by_sizes_) {
        scale = policy_ == "stretch" ? static_cast<double>(static_cast<const int64_t *>(sizes)[k]) / Dim(axis)
                                     : common;
      } else if (k < n) {
        scale = static_cast<const float *>(scales)[k];
      }
      if (k < n && has_region_) begin = Region(region, k), end = Region(region, n + k);
      RETURN_IF_ERROR(taps_[axis].Place(scale, begin, end));
      if (rule_.mode != ResizeMode::kNearest) continue;
      for (int64_t at = 0; at < taps_[axis].out(); ++at) {
        copy_.Set(static_cast<int>(axis), at, taps_[axis].index(at, 0));
      }
    }
    return absl::OkStatus();
  }
  void set_placed() { placed_ = true; }

  // Two tensors between the axes, each at most as large as the larger of both
  // forms of every axis.
  int64_t workspace_bytes() const override {
    if (rule_.mode == ResizeMode::kNearest) return 0;
    int64_t most = SizeOf(x_.dtype);
    for (const ResizeTaps &taps : taps_) most *= std::max(taps.in(), taps.out());
    return 2 * ((most + 63) / 64 * 64);
  }

  absl::Status Launch(Stream &, const KernelArguments &arguments) override {
    if (!placed_) {
      const void *const region = has_region_ ? arguments.inputs[1] : nullptr;
      const void *const sizes = by_sizes_ ? arguments.inputs[3] : nullptr;
      RETURN_IF_ERROR(Place(region, by_sizes_ ? nullptr : arguments.inputs[2], sizes));
    }
    if (rule_.mode == ResizeMode::kNearest) {
      copy_.Run(SizeOf(x_.dtype), arguments.inputs[0], arguments.outputs[0]);
    } else if (x_.dtype == DType::kFloat32) {
      Interpolate<float>(arguments);
    } else {
      Interpolate<double>(arguments);
    }
    if (rule_.coordinates == Coordinates::kTfCropAndResize) {
      if (x_.dtype == DType::kFloat64) {
        FillOutside<double>(arguments);
      } else {
        FillOutside<float>(arguments);
      }
    }
    return absl::OkStatus();
  }

 private:
  double Dim(int axis) const { return static_cast<double>(x_.shape[axis]); }
  double Region(const void *region, int64_t k) const {
    return region_type_ == DType::kFloat64 ? static_cast<const double *>(region)[k]
                                           : static_cast<const float *>(region)[k];
  }

  template <typename T>
  void Interpolate(const KernelArguments &arguments) const {
    const T *from = Input<T>(arguments, 0);
    T *const buffers[] = {static_cast<T *>(arguments.workspace),
                          static_cast<T *>(arguments.workspace) + workspace_bytes() / 2 / sizeof(T)};
    int last = -1, next = 0;
    for (size_t axis = 0; axis < taps_.size(); ++axis) {
      if (!taps_[axis].identity()) last = static_cast<int>(axis);
    }
    if (last < 0) std::copy_n(from, x_.elements(), Output<T>(arguments, 0));
    Shape shape = x_.shape;
    for (int axis = 0; axis <= last; ++axis) {
      if (taps_[axis].identity()) continue;
      T *const to = axis == last ? Output<T>(arguments, 0) : buffers[next];
      const auto dims = absl::MakeSpan(shape);
      RunAxis(taps_[axis], NumElements(dims.first(axis)), NumElements(dims.subspan(axis + 1)), from, to);
      shape[axis] = taps_[axis].out();
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
    for (size_t axis = 0; axis < taps_.size(); ++axis) {
      const auto dims = absl::MakeSpan(y_.shape);
      const int64_t outer = NumElements(dims.first(axis)), inner = NumElements(dims.subspan(axis + 1));
      for (int64_t at = 0; at < taps_[axis].out(); ++at) {
        if (!taps_[axis].outside(at)) continue;
        for (int64_t o = 0; o < outer; ++o) {
          std::fill_n(Output<T>(arguments, 0) + (o * taps_[axis].out() + at) * inner, inner,
                      static_cast<T>(extrapolation_));
        }
      }
    }
  }

  const TensorType x_, y_;
  const ResizeRule rule_;
  const std::vector<int> axes_;  // in the order of scales and sizes
  const std::string policy_;
  const float extrapolation_;
  const bool by_sizes_, has_region_;
  DType region_type_ = DType::kFloat32;
  bool placed_ = false;
  std::vector<ResizeTaps> taps_;  // of every axis
  IndexedCopy copy_;              // nearest
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 4}));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  ASSIGN_OR_RETURN(const ResizeRule rule, ReadResizeRule(spec));
  const int rank = static_cast<int>(x.shape.size());
  if (rank == 0 || y.shape.size() != x.shape.size() || x.elements() == 0) {
    return Invalid(spec, absl::StrCat("X is ", ToString(x), ", Y ", ToString(y),
                                      ", wanted equal ranks of 1 or more and elements to resize"));
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y.shape}));
  std::vector<int> axes;
  for (int64_t axis : spec.attributes.Ints("axes")) {
    absl::StatusOr<int> own = NormaliseAxis(axis, rank);
    if (!own.ok()) return Invalid(spec, own.status().message());
    axes.push_back(*own);
  }
  for (int axis = 0; axis < rank && !spec.attributes.Has("axes"); ++axis) axes.push_back(axis);
  for (int axis = 0; axis < rank; ++axis) {
    const bool resized = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!resized && x.shape[axis] != y.shape[axis]) {
      return Invalid(
          spec, absl::StrCat("X is ", ToString(x), ", Y ", ToString(y), ": axis ", axis, " is not resized"));
    }
  }
  const int64_t n = static_cast<int64_t>(axes.size());
  const bool by_sizes = Has(spec, 3), crops = rule.coordinates == Coordinates::kTfCropAndResize;
  if (by_sizes == Has(spec, 2)) return Invalid(spec, "wanted either scales or sizes");
  RETURN_IF_ERROR(CheckInputElements(spec, 2, DType::kFloat32, n));
  RETURN_IF_ERROR(CheckInputElements(spec, 3, DType::kInt64, n));
  if (crops && !Has(spec, 1)) return Invalid(spec, "tf_crop_and_resize without a region (input 1)");
  if (crops) RETURN_IF_ERROR(CheckInputElements(spec, 1, spec.inputs[1].type.dtype, 2 * n));
  if (crops && !IsFloat(spec.inputs[1].type.dtype))
    return Invalid(spec, "the region (input 1) has no floats");
  const bool computes = rule.mode != ResizeMode::kNearest || crops;
  if (SizeOf(x.dtype) == 0 || (computes && x.dtype != DType::kFloat32 && x.dtype != DType::kFloat64)) {
    return NoKernelFor(spec, x.dtype);
  }
  const std::string policy = spec.attributes.String("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    return Invalid(spec, absl::StrCat("keep_aspect_ratio_policy is ", policy));
  }
  auto kernel = std::make_unique<ResizeKernel>(spec, rule, std::move(axes));
  const auto constant = [&](int k) { return Has(spec, k) ? spec.inputs[k].constant : nullptr; };
  if (constant(by_sizes ? 3 : 2) != nullptr && (!crops || constant(1) != nullptr)) {
    if (absl::Status status = kernel->Place(constant(1), constant(2), constant(3)); !status.ok()) {
      return Invalid(spec, status.message());
    }
    kernel->set_placed();
  }
  return kernel;
}

}  // namespace

void RegisterResizeKernels(KernelRegistry &registry) { registry.Add("Resize", "", Prepare); }

}  // namespace pipec::cpu
