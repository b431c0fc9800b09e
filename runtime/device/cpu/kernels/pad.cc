// Pad in its modes constant, edge, reflect and wrap. Negative padding cuts.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/check.h"
#include "runtime/device/cpu/kernels/indexed_copy.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/strided_copy.h"

namespace pipec::cpu {
namespace {

// The padding of each axis, from the contents of inputs 1 and 3.
struct Padding {
  Shape before, after;
};

class PadKernel : public Kernel {
 public:
  explicit PadKernel(const KernelSpec& spec)
      : x_(spec.inputs[0].type), y_(spec.outputs[0].type), pads_(spec.inputs[1].type) {
    if (Has(spec, 3)) axes_ = spec.inputs[3].type;
  }

  // Finds the places, once and for all if the padding is known at load.
  absl::Status Place(const void* pads, const void* axes, bool for_good) {
    ASSIGN_OR_RETURN(const Padding padding, ReadPadding(pads, axes));
    PlacePadding(padding);
    placed_ = for_good;
    return absl::OkStatus();
  }

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    if (!placed_) {
      const void* const axes = axes_.dtype == DType::kUndefined ? nullptr : arguments.inputs[3];
      RETURN_IF_ERROR(Place(arguments.inputs[1], axes, /*for_good=*/false));
    }
    Run(arguments);
    return absl::OkStatus();
  }

 protected:
  virtual void PlacePadding(const Padding& padding) = 0;
  virtual void Run(const KernelArguments& arguments) const = 0;

  const TensorType x_, y_;

 private:
  absl::StatusOr<Padding> ReadPadding(const void* pads_operand, const void* axes_operand) const {
    const size_t rank = x_.shape.size();
    const Ints pads = ReadInts(pads_, pads_operand);
    Ints axes(rank);
    for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(i);
    if (axes_operand != nullptr) axes = ReadInts(axes_, axes_operand);
    Padding padding{Shape(rank, 0), Shape(rank, 0)};
    Shape shape = x_.shape;
    for (size_t i = 0; i < axes.size(); ++i) {
      absl::StatusOr<int> axis = NormaliseAxis(axes[i], static_cast<int>(rank));
      if (!axis.ok()) return axis.status();
      const int64_t before = pads[i], after = pads[axes.size() + i];
      constexpr int64_t kMost = int64_t{1} << 48;
      if (std::max(before, after) > kMost || std::min(before, after) < -kMost) {
        return absl::InvalidArgumentError(absl::StrCat("padding ", before, ", ", after, " is out of reach"));
      }
      padding.before[*axis] = before;
      padding.after[*axis] = after;
      shape[*axis] = x_.shape[*axis] + before + after;
    }
    if (shape != y_.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("padding gives ", ToString(shape), ", but output 0 is ", ToString(y_.shape)));
    }
    return padding;
  }

  const TensorType pads_;
  TensorType axes_;  // undefined: all
  bool placed_ = false;
};

// Mode constant: the result is filled, then what is left of the operand is copied into it.
class ConstantPadKernel : public PadKernel {
 public:
  explicit ConstantPadKernel(const KernelSpec& spec) : PadKernel(spec), has_value_(Has(spec, 2)) {
    const int64_t elements[] = {y_.elements()}, from[] = {0}, to[] = {1};
    fill_ = StridedCopy(SizeOf(y_.dtype), elements, from, to);
  }

 private:
  void PlacePadding(const Padding& padding) override {
    const Shape x_strides = Strides(x_.shape), y_strides = Strides(y_.shape);
    Shape kept = x_.shape;
    from_ = to_ = 0;
    for (size_t i = 0; i < kept.size(); ++i) {
      const int64_t before = padding.before[i], after = padding.after[i];
      kept[i] = std::max<int64_t>(0, kept[i] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0));
      from_ += std::max<int64_t>(-before, 0) * x_strides[i] * SizeOf(x_.dtype);
      to_ += std::max<int64_t>(before, 0) * y_strides[i] * SizeOf(x_.dtype);
    }
    copy_ = StridedCopy(SizeOf(x_.dtype), kept, x_strides, y_strides);
  }

  void Run(const KernelArguments& arguments) const override {
    static constexpr uint64_t kZero = 0;
    fill_.Run(has_value_ ? arguments.inputs[2] : &kZero, arguments.outputs[0]);
    copy_.Run(static_cast<const std::byte*>(arguments.inputs[0]) + from_,
              static_cast<std::byte*>(arguments.outputs[0]) + to_);
  }

  const bool has_value_;
  StridedCopy fill_, copy_;
  int64_t from_ = 0, to_ = 0;  // bytes
};

enum class Outside { kEdge, kReflect, kWrap };

// Where place `at` of an axis of n places, which may be outside, is taken from.
int64_t Inside(Outside mode, int64_t at, int64_t n) {
  if (mode == Outside::kEdge || n == 1) return std::clamp<int64_t>(at, 0, n - 1);
  const int64_t period = mode == Outside::kWrap ? n : 2 * (n - 1);
  const int64_t place = (at % period + period) % period;
  return place < n ? place : period - place;
}

// The other modes: the result is made of elements of the operand.
class MirrorPadKernel : public PadKernel {
 public:
  MirrorPadKernel(const KernelSpec& spec, Outside mode)
      : PadKernel(spec), mode_(mode), copy_(x_.shape, y_.shape) {}

 private:
  void PlacePadding(const Padding& padding) override {
    for (size_t i = 0; i < y_.shape.size(); ++i) {
      for (int64_t at = 0; at < y_.shape[i]; ++at) {
        copy_.Set(static_cast<int>(i), at, Inside(mode_, at - padding.before[i], x_.shape[i]));
      }
    }
  }

  void Run(const KernelArguments& arguments) const override {
    copy_.Run(SizeOf(x_.dtype), arguments.inputs[0], arguments.outputs[0]);
  }

  const Outside mode_;
  IndexedCopy copy_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 4}));
  const TensorType& x = spec.inputs[0].type;
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  const int64_t axes = Has(spec, 3) ? spec.inputs[3].type.elements() : static_cast<int64_t>(x.shape.size());
  if (!IsSmallInts(spec.inputs[1].type) || spec.inputs[1].type.elements() != 2 * axes ||
      (Has(spec, 3) && !IsSmallInts(spec.inputs[3].type))) {
    return Invalid(spec, absl::StrCat("input 1 is ", ToString(spec.inputs[1].type),
                                      ", wanted two integers for each of ", axes, " axes"));
  }
  if (Has(spec, 2) && spec.inputs[2].type.elements() != 1) return Invalid(spec, "input 2 is not one value");
  if (Has(spec, 2)) RETURN_IF_ERROR(CheckInputType(spec, 2, x.dtype));
  if (spec.outputs[0].type.dtype != x.dtype)
    return CheckOutput(spec, 0, {x.dtype, spec.outputs[0].type.shape});
  if (spec.outputs[0].type.shape.size() != x.shape.size())
    return Invalid(spec, "output 0 has another rank than input 0");
  std::unique_ptr<PadKernel> kernel;
  if (const std::string mode = spec.attributes.String("mode", "constant"); mode == "constant") {
    kernel = std::make_unique<ConstantPadKernel>(spec);
  } else if (mode == "edge" || mode == "reflect" || mode == "wrap") {
    if (x.shape.empty() || x.elements() == 0) {
      return Invalid(spec, absl::StrCat("mode ", mode, " has nothing to take from ", ToString(x)));
    }
    kernel = std::make_unique<MirrorPadKernel>(spec, mode == "edge"      ? Outside::kEdge
                                                     : mode == "reflect" ? Outside::kReflect
                                                                         : Outside::kWrap);
  } else {
    return Invalid(spec, absl::StrCat("mode is ", mode, ", wanted constant, edge, reflect or wrap"));
  }
  const bool axes_known = !Has(spec, 3) || spec.inputs[3].constant != nullptr;
  if (spec.inputs[1].constant != nullptr && axes_known) {
    const void* const constant_axes = Has(spec, 3) ? spec.inputs[3].constant : nullptr;
    if (absl::Status status = kernel->Place(spec.inputs[1].constant, constant_axes, /*for_good=*/true);
        !status.ok()) {
      return Invalid(spec, status.message());
    }
  }
  return kernel;
}

}  // namespace

void RegisterPadKernels(KernelRegistry& registry) { registry.Add("Pad", "", Prepare); }

}  // namespace pipec::cpu
