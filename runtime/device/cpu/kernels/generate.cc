// Constant, ConstantOfShape, Range, Shape, Size: results that come from attributes, shapes and scalars. The
// compiler folds most of them, through these kernels.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/strided_copy.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

// Contents known at load.
class ContentsKernel : public Kernel {
 public:
  explicit ContentsKernel(std::string bytes) : bytes_(std::move(bytes)) {}
  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    std::memcpy(arguments.outputs[0], bytes_.data(), bytes_.size());
    return absl::OkStatus();
  }

 private:
  const std::string bytes_;
};

template <typename T>
std::unique_ptr<Kernel> MakeContents(absl::Span<const T> values) {
  return std::make_unique<ContentsKernel>(
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareConstant(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 0, .max_inputs = 0}));
  const Attributes& attributes = spec.attributes;
  if (const TensorLiteral* value = attributes.Tensor("value")) {
    RETURN_IF_ERROR(CheckOutput(spec, 0, value->type));
    if (static_cast<int64_t>(value->bytes->size()) != value->type.bytes()) {
      return Invalid(
          spec, absl::StrCat("value has ", value->bytes->size(), " bytes, its type ", value->type.bytes()));
    }
    return std::make_unique<ContentsKernel>(*value->bytes);
  }
  for (const bool many : {false, true}) {
    const bool ints = attributes.Has(many ? "value_ints" : "value_int");
    if (!ints && !attributes.Has(many ? "value_floats" : "value_float")) continue;
    const std::vector<int64_t> i =
        many ? attributes.Ints("value_ints") : std::vector{attributes.Int("value_int")};
    const std::vector<float> f =
        many ? attributes.Floats("value_floats") : std::vector{attributes.Float("value_float")};
    Shape shape;
    if (many) shape.push_back(static_cast<int64_t>(ints ? i.size() : f.size()));
    RETURN_IF_ERROR(CheckOutput(spec, 0, {ints ? DType::kInt64 : DType::kFloat32, shape}));
    return ints ? MakeContents<int64_t>(i) : MakeContents<float>(f);
  }
  return absl::UnimplementedError(absl::StrCat(
      "node '", spec.name,
      "' (Constant): the cpu device has dense numbers only: value, value_int(s), value_float(s)"));
}

class FillKernel : public Kernel {
 public:
  FillKernel(const StridedCopy& copy, uint64_t value) : copy_(copy), value_(value) {}
  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    copy_.Run(&value_, arguments.outputs[0]);
    return absl::OkStatus();
  }

 private:
  const StridedCopy copy_;
  const uint64_t value_;  // the element's bytes come first
};

// A shape that is known at launch only is taken from the plan.
absl::StatusOr<std::unique_ptr<Kernel>> PrepareConstantOfShape(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const KernelOperand& operand = spec.inputs[0];
  if (!IsSmallInts(operand.type)) return Invalid(spec, absl::StrCat("input 0 is ", ToString(operand.type)));
  Shape shape = spec.outputs[0].type.shape;
  if (operand.constant != nullptr) {
    const Ints dims = ReadInts(operand.type, operand.constant);
    shape.assign(dims.begin(), dims.end());
  }
  DType dtype = DType::kFloat32;
  uint64_t value = 0;
  if (const TensorLiteral* literal = spec.attributes.Tensor("value")) {
    dtype = literal->type.dtype;
    const int64_t bytes = SizeOf(dtype);
    if (bytes == 0) return NoKernelFor(spec, dtype);
    if (literal->type.elements() != 1 || static_cast<int64_t>(literal->bytes->size()) != bytes) {
      return Invalid(spec, absl::StrCat("value is ", ToString(literal->type), ", wanted one element"));
    }
    std::memcpy(&value, literal->bytes->data(), bytes);
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, shape}));
  const int64_t elements[] = {NumElements(shape)}, from[] = {0}, to[] = {1};
  return std::make_unique<FillKernel>(StridedCopy(SizeOf(dtype), elements, from, to), value);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareShape(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const Shape& x = spec.inputs[0].type.shape;
  const int64_t rank = static_cast<int64_t>(x.size());
  const auto place = [rank](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const int64_t start = place(spec.attributes.Int("start", 0)), end = place(spec.attributes.Int("end", rank));
  const auto dims = absl::MakeSpan(x).subspan(start, std::max<int64_t>(end - start, 0));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kInt64, {static_cast<int64_t>(dims.size())}}));
  return MakeContents<int64_t>(dims);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSize(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kInt64, {}}));
  return MakeContents<int64_t>({spec.inputs[0].type.elements()});
}

// start, start + delta, ... before limit.
template <typename T>
class RangeKernel : public Kernel {
 public:
  explicit RangeKernel(int64_t elements) : elements_(elements) {}

  absl::Status CheckLength(const void* const* inputs) const {
    const double start = *static_cast<const T*>(inputs[0]), limit = *static_cast<const T*>(inputs[1]),
                 delta = *static_cast<const T*>(inputs[2]);
    const double wanted = std::max(0.0, std::ceil((limit - start) / delta));
    if (wanted == static_cast<double>(elements_)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the range from ", start, " to ", limit, " by ", delta,
                                                   " has ", wanted, " elements, but output 0 has ",
                                                   elements_));
  }

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    RETURN_IF_ERROR(CheckLength(arguments.inputs));
    using W = Wrapping<T>;
    const auto start = static_cast<W>(*static_cast<const T*>(arguments.inputs[0])),
               delta = static_cast<W>(*static_cast<const T*>(arguments.inputs[2]));
    auto* y = static_cast<T*>(arguments.outputs[0]);
    for (int64_t i = 0; i < elements_; ++i) y[i] = static_cast<T>(start + static_cast<W>(i) * delta);
    return absl::OkStatus();
  }

 private:
  const int64_t elements_;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareRange(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 3, .max_inputs = 3}));
  const TensorType& y = spec.outputs[0].type;
  const void* constants[3] = {};
  bool known = true;
  for (int k = 0; k < 3; ++k) {
    RETURN_IF_ERROR(CheckInputType(spec, k, y.dtype));
    if (spec.inputs[k].type.elements() != 1)
      return Invalid(spec, absl::StrCat("input ", k, " is not one value"));
    constants[k] = spec.inputs[k].constant;
    known = known && constants[k] != nullptr;
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, {y.dtype, {y.elements()}}));
  using Types = TypeList<float, double, int64_t, int32_t, int16_t>;
  absl::Status status;
  auto kernel = ForType<std::unique_ptr<Kernel>>(Types(), y.dtype, [&](auto t) -> std::unique_ptr<Kernel> {
    auto range = std::make_unique<RangeKernel<typename decltype(t)::type>>(y.elements());
    if (known) status = range->CheckLength(constants);
    return range;
  });
  if (kernel == nullptr) return NoKernelFor(spec, y.dtype);
  if (!status.ok()) return Invalid(spec, status.message());
  return kernel;
}

}  // namespace

void RegisterGenerateKernels(KernelRegistry& registry) {
  registry.Add("Constant", "", PrepareConstant);
  registry.Add("ConstantOfShape", "", PrepareConstantOfShape);
  registry.Add("Range", "", PrepareRange);
  registry.Add("Shape", "", PrepareShape);
  registry.Add("Size", "", PrepareSize);
}

}  // namespace pipec::cpu
