// Gradient (x..., y) -> (dx...): of ONNX's training domain, with y, which ONNX names in an attribute, as its last
// operand. It stands for nodes that passes/expand_gradient.cc puts in its place.
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

InferredTypes InferGradient(const NodeSpec& spec) {
  const int operands = static_cast<int>(spec.inputs.size());
  RETURN_IF_ERROR(CheckOperands(spec, operands, operands));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, operands - 1));
  std::vector<TensorType> types;
  for (size_t k = 0; k < spec.outputs.size(); ++k) {
    RETURN_IF_ERROR(CheckFloat(spec, static_cast<int>(k)));
    types.push_back(TypeOf(spec, static_cast<int>(k)));
  }
  RETURN_IF_ERROR(CheckFloat(spec, operands - 1));
  return types;
}

const OpInfo kRows[] = {{"Gradient", kPipecDomain, nullptr, NoBatchAxis, Alias::kNone, 0, InferGradient}};

}  // namespace

absl::Span<const OpInfo> GradientOps() { return kRows; }

}  // namespace pipec
