#include "runtime/executor/instruction.h"

#include <memory>
#include <string>
#include <vector>

namespace pipec {
namespace {

template <typename To, typename From>
std::vector<To> ToVector(const From& values) {
  return std::vector<To>(values.begin(), values.end());
}

Attribute ValueOf(const plan::Attribute& attribute) {
  switch (attribute.value_case()) {
    case plan::Attribute::kF:
      return attribute.f();
    case plan::Attribute::kS:
      return attribute.s();
    case plan::Attribute::kInts:
      return ToVector<int64_t>(attribute.ints().values());
    case plan::Attribute::kFloats:
      return ToVector<float>(attribute.floats().values());
    case plan::Attribute::kStrings:
      return ToVector<std::string>(attribute.strings().values());
    case plan::Attribute::kTensor: {
      const plan::Attribute::Literal& literal = attribute.tensor();
      TensorType type{static_cast<DType>(literal.dtype()),
                      Shape(literal.shape().begin(), literal.shape().end())};
      return TensorLiteral{std::move(type), std::make_shared<const std::string>(literal.data())};
    }
    default:
      return attribute.i();
  }
}

}  // namespace

TensorType TypeOf(const plan::Tensor& tensor) {
  return {static_cast<DType>(tensor.dtype()), Shape(tensor.shape().begin(), tensor.shape().end())};
}

Attributes AttributesOf(const plan::Instruction& instruction) {
  Attributes attributes;
  for (const plan::Attribute& attribute : instruction.attributes())
    attributes.Set(attribute.name(), ValueOf(attribute));
  return attributes;
}

KernelSpec SpecOf(const plan::RankPlan& rank_plan, const plan::Instruction& instruction,
                  absl::Span<const std::byte* const> constants) {
  KernelSpec spec;
  spec.op = instruction.op();
  spec.domain = instruction.domain();
  spec.name = instruction.name();
  spec.attributes = AttributesOf(instruction);
  spec.modelled_seconds = instruction.modelled_seconds();
  auto operand = [&](int32_t tensor) {
    if (tensor < 0) return KernelOperand{.type = {}, .present = false};
    return KernelOperand{.type = TypeOf(rank_plan.tensors(tensor)), .constant = constants[tensor]};
  };
  for (int32_t tensor : instruction.inputs()) spec.inputs.push_back(operand(tensor));
  for (int32_t tensor : instruction.outputs()) spec.outputs.push_back(operand(tensor));
  return spec;
}

}  // namespace pipec
