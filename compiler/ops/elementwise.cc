// Element-wise ops with broadcasting, and the gradients of the activations.
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// (dY, Y or X) -> (dX), all of one type.
InferredTypes InferActivationGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 2));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  RETURN_IF_ERROR(CheckSameType(spec, 0, 1));
  return std::vector<TensorType>{TypeOf(spec, 0)};
}

// May overwrite operand 0: the kernels read an element before they write it.
constexpr OpInfo InPlace(absl::string_view op) {
  return {op, "", PerOutputElement<1>, nullptr, Alias::kInPlace, 0};
}

constexpr OpInfo ActivationGrad(absl::string_view op, NodeCost (*cost)(const Node&)) {
  return {op, kPipecDomain, cost, nullptr, Alias::kInPlace, 0, InferActivationGrad};
}

const OpInfo kRows[] = {
    InPlace("Add"),
    InPlace("Sub"),
    InPlace("Mul"),
    InPlace("Div"),
    InPlace("Neg"),
    InPlace("Pow"),
    InPlace("Sqrt"),
    InPlace("Exp"),
    InPlace("Log"),
    InPlace("Erf"),
    InPlace("Tanh"),
    InPlace("Sigmoid"),
    InPlace("Relu"),
    {"Gelu", "", PerOutputElement<8>, nullptr, Alias::kInPlace, 0},
    InPlace("Abs"),
    InPlace("Ceil"),
    InPlace("Cos"),
    InPlace("Floor"),
    InPlace("Mod"),
    InPlace("Reciprocal"),
    InPlace("Sign"),
    InPlace("Sin"),
    InPlace("Not"),
    InPlace("And"),
    InPlace("Or"),
    InPlace("Xor"),
    {"Equal", "", PerOutputElement<1>},
    {"Less", "", PerOutputElement<1>},
    {"Greater", "", PerOutputElement<1>},
    {"GreaterOrEqual", "", PerOutputElement<1>},
    {"LessOrEqual", "", PerOutputElement<1>},
    {"IsNaN", "", PerOutputElement<1>},
    // Of any number of operands, one of which may come again after the result has been begun: not in place.
    {"Max", "", PerOutputElement<1>},
    {"Min", "", PerOutputElement<1>},
    {"Sum", "", PerOutputElement<1>},
    // Operand 0 is the condition; the result has the type of operand 1.
    {"Where", "", PerOutputElement<1>, nullptr, Alias::kInPlace, 1},
    {"Cast", "", PerOutputElement<1>},
    ActivationGrad("TanhGrad", PerOutputElement<3>),
    ActivationGrad("SigmoidGrad", PerOutputElement<3>),
    ActivationGrad("ReluGrad", PerOutputElement<1>),
    ActivationGrad("GeluGrad", PerOutputElement<12>),
};

}  // namespace

absl::Span<const OpInfo> ElementwiseOps() { return kRows; }

}  // namespace pipec
