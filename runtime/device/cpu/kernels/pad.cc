// Pad, mode constant. Negative padding cuts.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/check.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/strided_copy.h"

namespace pipec::cpu {
namespace {

class PadKernel : public Kernel {
 public:
  explicit PadKernel(const KernelSpec& spec)
      : x_(spec.inputs[0].type), y_(spec.outputs[0].type), has_value_(Has(spec, 2)) {
    types_[1] = spec.inputs[1].type;
    if (Has(spec, 3)) types_[3] = spec.inputs[3].type;
    const int64_t elements[] = {y_.elements()}, from[] = {0}, to[] = {1};
    fill_ = StridedCopy(SizeOf(y_.dtype), elements, from, to);
  }

  // Finds the places from the contents of inputs 1 and 3, once and for all if they are known at load.
  absl::Status Place(const void* const* inputs, bool for_good) {
    const Ints pads = ReadInts(types_[1], inputs[1]);
    Ints axes(x_.shape.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
    if (types_[3].dtype != DType::kUndefined) axes = ReadInts(types_[3], inputs[3]);
    const Shape x_strides = Strides(x_.shape), y_strides = Strides(y_.shape);
    Shape shape = x_.shape, kept = x_.shape;
    from_ = to_ = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      absl::StatusOr<int> axis = NormaliseAxis(axes[i], static_cast<int>(x_.shape.size()));
      if (!axis.ok()) return axis.status();
      const int64_t before = pads[i], after = pads[axes.size() + i], dim = x_.shape[*axis];
      constexpr int64_t kMost = int64_t{1} << 48;
      if (std::max(before, after) > kMost || std::min(before, after) < -kMost) {
        return absl::InvalidArgumentError(absl::StrCat("padding ", before, ", ", after, " is out of reach"));
      }
      shape[*axis] = dim + before + after;
      kept[*axis] = std::max<int64_t>(0, dim + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0));
      from_ += std::max<int64_t>(-before, 0) * x_strides[*axis] * SizeOf(x_.dtype);
      to_ += std::max<int64_t>(before, 0) * y_strides[*axis] * SizeOf(x_.dtype);
    }
    if (shape != y_.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("padding gives ", ToString(shape), ", but output 0 is ", ToString(y_.shape)));
    }
    copy_ = StridedCopy(SizeOf(x_.dtype), kept, x_strides, y_strides);
    placed_ = for_good;
    return absl::OkStatus();
  }

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    if (!placed_) RETURN_IF_ERROR(Place(arguments.inputs, /*for_good=*/false));
    static constexpr uint64_t kZero = 0;
    fill_.Run(has_value_ ? arguments.inputs[2] : &kZero, arguments.outputs[0]);
    copy_.Run(static_cast<const std::byte*>(arguments.inputs[0]) + from_,
              static_cast<std::byte*>(arguments.outputs[0]) + to_);
    return absl::OkStatus();
  }

 private:
  const TensorType x_, y_;
  const bool has_value_;
  TensorType types_[4];  // of the inputs 1 and 3; undefined: absent
  bool placed_ = false;
  StridedCopy fill_, copy_;
  int64_t from_ = 0, to_ = 0;  // bytes
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 4}));
  const TensorType& x = spec.inputs[0].type;
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  if (const std::string mode = spec.attributes.String("mode", "constant"); mode != "constant") {
    return absl::UnimplementedError(absl::StrCat(
        "node '", spec.name, "' (Pad): the cpu device pads with mode constant only, got ", mode));
  }
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
  auto kernel = std::make_unique<PadKernel>(spec);
  const void* constants[4] = {nullptr, spec.inputs[1].constant, nullptr,
                              Has(spec, 3) ? spec.inputs[3].constant : nullptr};
  if (constants[1] != nullptr && (constants[3] != nullptr || !Has(spec, 3))) {
    if (absl::Status status = kernel->Place(constants, /*for_good=*/true); !status.ok()) {
      return Invalid(spec, status.message());
    }
  }
  return kernel;
}

}  // namespace

void RegisterPadKernels(KernelRegistry& registry) { registry.Add("Pad", "", Prepare); }

}  // namespace pipec::cpu
