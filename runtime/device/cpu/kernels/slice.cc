// Slice, and SliceGrad which writes a gradient back to where Slice read.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/check.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/strided_copy.h"

namespace pipec::cpu {
namespace {

// Where a slice lies in its operand, in elements.
struct Region {
  int64_t offset = 0;
  Shape shape, strides;
};

// ONNX's rules: negative bounds count from the end, bounds are then held to the operand. Allocates nothing if
// all is well.
absl::StatusOr<Region> SliceRegion(const Shape& operand, absl::Span<const int64_t> starts,
                                   absl::Span<const int64_t> ends, absl::Span<const int64_t> axes,
                                   absl::Span<const int64_t> steps) {
  Region region{0, operand, Strides(operand)};
  for (size_t i = 0; i < starts.size(); ++i) {
    absl::StatusOr<int> axis = NormaliseAxis(axes[i], static_cast<int>(operand.size()));
    if (!axis.ok()) return axis.status();
    const int64_t dim = operand[*axis], step = steps[i];
    if (step == 0) return absl::InvalidArgumentError(absl::StrCat("the step on axis ", axes[i], " is 0"));
    const int64_t least = step > 0 ? 0 : -1, most = step > 0 ? dim : dim - 1;
    const int64_t start = std::clamp(starts[i] < 0 ? starts[i] + dim : starts[i],
                                     step > 0 ? 0 : std::min<int64_t>(0, most), most);
    const int64_t end = std::clamp(ends[i] < 0 ? ends[i] + dim : ends[i], least, most);
    const int64_t way = step > 0 ? end - start : start - end;
    const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    region.shape[*axis] = way <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(way) - 1) / stride + 1);
    if (region.shape[*axis] > 0) region.offset += start * region.strides[*axis];
    // A single element needs no stride, and a huge step would overflow it.
    region.strides[*axis] = region.shape[*axis] > 1 ? region.strides[*axis] * step : 0;
  }
  return region;
}

class SliceKernel : public Kernel {
 public:
  explicit SliceKernel(const KernelSpec& spec) : x_(spec.inputs[0].type), y_(spec.outputs[0].type) {
    for (int k = 1; k < static_cast<int>(spec.inputs.size()); ++k) {
      if (Has(spec, k)) types_[k] = spec.inputs[k].type;
    }
  }

  // Finds the slice from the contents of inputs 1 to 4, once and for all if they are known at load.
  absl::Status Place(const void* const* inputs, bool for_good) {
    const Ints starts = ReadInts(types_[1], inputs[1]), ends = ReadInts(types_[2], inputs[2]);
    Ints axes(starts.size()), steps(starts.size(), 1);
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
    if (types_[3].dtype != DType::kUndefined) axes = ReadInts(types_[3], inputs[3]);
    if (types_[4].dtype != DType::kUndefined) steps = ReadInts(types_[4], inputs[4]);
    ASSIGN_OR_RETURN(const Region region, SliceRegion(x_.shape, starts, ends, axes, steps));
    if (region.shape != y_.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("the slice is ", ToString(region.shape), ", but output 0 is ", ToString(y_.shape)));
    }
    copy_ = StridedCopy(SizeOf(x_.dtype), region.shape, region.strides, Strides(region.shape));
    offset_ = region.offset * SizeOf(x_.dtype);
    placed_ = for_good;
    return absl::OkStatus();
  }

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    if (!placed_) RETURN_IF_ERROR(Place(arguments.inputs, /*for_good=*/false));
    copy_.Run(static_cast<const std::byte*>(arguments.inputs[0]) + offset_, arguments.outputs[0]);
    return absl::OkStatus();
  }

 private:
  const TensorType x_, y_;
  TensorType types_[5];  // of the inputs; undefined: absent
  bool placed_ = false;
  StridedCopy copy_;
  int64_t offset_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSlice(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 3, .max_inputs = 5}));
  const TensorType& x = spec.inputs[0].type;
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  const void* constants[5] = {};
  bool known = true;
  for (int k = 1; k < 5; ++k) {
    if (!Has(spec, k)) continue;
    const KernelOperand& operand = spec.inputs[k];
    if (!IsSmallInts(operand.type) || operand.type.elements() != spec.inputs[1].type.elements()) {
      return Invalid(
          spec, absl::StrCat("input ", k, " is ", ToString(operand.type), ", wanted one integer an axis"));
    }
    constants[k] = operand.constant;
    known = known && operand.constant != nullptr;
  }
  if (spec.outputs[0].type.dtype != x.dtype)
    return CheckOutput(spec, 0, {x.dtype, spec.outputs[0].type.shape});
  auto kernel = std::make_unique<SliceKernel>(spec);
  if (known) {
    if (absl::Status status = kernel->Place(constants, /*for_good=*/true); !status.ok()) {
      return Invalid(spec, status.message());
    }
  }
  return kernel;
}

class SliceGradKernel : public Kernel {
 public:
  SliceGradKernel(const StridedCopy& copy, int64_t offset, int64_t bytes)
      : copy_(copy), offset_(offset), bytes_(bytes) {}

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    auto* dx = static_cast<std::byte*>(arguments.outputs[0]);
    std::memset(dx, 0, bytes_);
    copy_.Run(arguments.inputs[0], dx + offset_);
    return absl::OkStatus();
  }

 private:
  StridedCopy copy_;
  int64_t offset_, bytes_;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSliceGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& dy = spec.inputs[0].type;
  const int64_t bytes = SizeOf(dy.dtype);
  if (bytes == 0) return NoKernelFor(spec, dy.dtype);
  const std::vector<int64_t> dims = spec.attributes.Ints("shape");
  const Shape shape(dims.begin(), dims.end());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dy.dtype, shape}));
  const std::vector<int64_t> starts = spec.attributes.Ints("starts"), axes = spec.attributes.Ints("axes"),
                             steps = spec.attributes.Ints("steps");
  if (shape.size() != dy.shape.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    return Invalid(spec, "shape, starts, axes and steps do not fit each other");
  }
  Region region{0, shape, Strides(shape)};
  for (size_t i = 0; i < starts.size(); ++i) {
    absl::StatusOr<int> axis = NormaliseAxis(axes[i], static_cast<int>(shape.size()));
    if (!axis.ok()) return Invalid(spec, axis.status().message());
    const int64_t n = dy.shape[*axis], dim = shape[*axis];
    region.shape[*axis] = n;
    if (n == 0) continue;
    // Both ends inside the operand: all of it is. The step is compared first, so that nothing overflows.
    const bool inside =
        starts[i] >= 0 && starts[i] < dim && steps[i] != 0 &&
        (n == 1 || (std::abs(static_cast<double>(steps[i])) * static_cast<double>(n - 1) < dim &&
                    starts[i] + (n - 1) * steps[i] >= 0 && starts[i] + (n - 1) * steps[i] < dim));
    if (!inside) {
      return Invalid(spec, absl::StrCat("start ", starts[i], ", step ", steps[i], " and ", n,
                                        " elements leave axis ", axes[i], " of ", ToString(shape)));
    }
    region.offset += starts[i] * region.strides[*axis];
    region.strides[*axis] *= n == 1 ? 1 : steps[i];
  }
  if (region.shape != dy.shape) {
    return Invalid(spec,
                   absl::StrCat("input 0 is ", ToString(dy.shape), ", wanted ", ToString(region.shape)));
  }
  return std::make_unique<SliceGradKernel>(StridedCopy(bytes, dy.shape, Strides(dy.shape), region.strides),
                                           region.offset * bytes, spec.outputs[0].type.bytes());
}

}  // namespace

void RegisterSliceKernels(KernelRegistry& registry) {
  registry.Add("Slice", "", PrepareSlice);
  registry.Add("SliceGrad", "ai.pipec", PrepareSliceGrad);
}

}  // namespace pipec::cpu
