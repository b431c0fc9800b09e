// Accumulators, norms, optimizers, messages.
#include "absl/strings/str_cat.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// The wire's time is the link's, not the device's.
NodeCost NoCost(const Node&) { return {}; }

// (sum, x) -> (sum'): one shape; float sums of floats, int64 sums of int64
InferredTypes InferAccumulate(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 2));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  const TensorType &sum = TypeOf(spec, 0), &x = TypeOf(spec, 1);
  if (sum.shape != x.shape) return BadOperands(spec, "sum and x must have the same shape");
  const bool floats = IsFloat(sum.dtype) && IsFloat(x.dtype);
  if (!floats && !(sum.dtype == DType::kInt64 && x.dtype == DType::kInt64)) {
    return BadOperands(spec, "sum and x must both be floats or both int64");
  }
  return std::vector<TensorType>{sum};
}

InferredTypes InferSquaredNorm(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 1, 1));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  return std::vector<TensorType>{{DType::kFloat64, {}}};
}

// (loss_sum, loss_weight?, norms...) -> (scale, gradient_norm, loss)
InferredTypes InferGradientScale(const NodeSpec& spec) {
  const int operands = spec.inputs.size();
  RETURN_IF_ERROR(CheckOperands(spec, 1, std::max(operands, 2)));
  RETURN_IF_ERROR(CheckOutputs(spec, 3, 3));
  RETURN_IF_ERROR(CheckScalar(spec, 0, DType::kFloat64));
  if (Present(spec, 1)) RETURN_IF_ERROR(CheckScalar(spec, 1, DType::kFloat64));
  int64_t norms = 0;
  for (int k = 2; k < operands; ++k) {
    if (!Present(spec, k) || TypeOf(spec, k).dtype != DType::kFloat64 || TypeOf(spec, k).shape.size() > 1) {
      return BadOperands(spec, absl::StrCat("operand ", k, " must be a float64 scalar or vector of norms"));
    }
    norms += TypeOf(spec, k).elements();
  }
  for (int64_t place : spec.attributes.Ints("order")) {
    if (place < 0 || place >= norms) {
      return BadOperands(spec, absl::StrCat("order has ", place, ", but there are ", norms, " norms"));
    }
  }
  return std::vector<TensorType>(3, {DType::kFloat64, {}});
}

// () -> (y)
InferredTypes InferLossScale(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 0, 0));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  if (!(spec.attributes.Float("divisor", 1) > 0)) return BadOperands(spec, "divisor must be above 0");
  return std::vector<TensorType>{{DType::kFloat32, {}}};
}

InferredTypes InferPack(const NodeSpec& spec) {
  const int operands = spec.inputs.size();
  RETURN_IF_ERROR(CheckOperands(spec, operands, operands));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  for (int k = 0; k < operands; ++k) RETURN_IF_ERROR(CheckScalar(spec, k, DType::kFloat64));
  return std::vector<TensorType>{{DType::kFloat64, {operands}}};
}

// (p, g, states..., scale) -> (p', states'...): one shape throughout but for the scalar scale
template <int kStates>
InferredTypes InferOptimizer(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, kStates + 3, kStates + 3));
  RETURN_IF_ERROR(CheckOutputs(spec, kStates + 1, kStates + 1));
  RETURN_IF_ERROR(CheckScalar(spec, kStates + 2, DType::kFloat64));
  std::vector<TensorType> types{TypeOf(spec, 0)};
  for (int k = 0; k < kStates + 2; ++k) {
    RETURN_IF_ERROR(CheckFloat(spec, k));
    if (TypeOf(spec, k).shape != TypeOf(spec, 0).shape) {
      return BadOperands(spec, absl::StrCat("operand ", k, " must have the parameter's shape"));
    }
    if (k >= 2) types.push_back(TypeOf(spec, k));
  }
  return types;
}

InferredTypes InferMessage(const NodeSpec& spec) {
  const int operands = spec.inputs.size();
  RETURN_IF_ERROR(CheckOperands(spec, operands, operands));
  std::vector<TensorType> types;
  for (const Value* value : spec.inputs) types.push_back(value->type);
  return types;
}

const OpInfo kRows[] = {
    {"Accumulate", kPipecDomain, PerOutputElement<1>, NoBatchAxis, Alias::kSameMemory, 0, InferAccumulate},
    {"SquaredNorm", kPipecDomain, PerInputElement<2>, NoBatchAxis, Alias::kNone, 0, InferSquaredNorm},
    {"GradientScale", kPipecDomain, nullptr, NoBatchAxis, Alias::kNone, 0, InferGradientScale},
    {"LossScale", kPipecDomain, nullptr, NoBatchAxis, Alias::kNone, 0, InferLossScale},
    {"Pack", kPipecDomain, nullptr, NoBatchAxis, Alias::kNone, 0, InferPack},
    {"Sgd", kPipecDomain, PerInputElement<5>, NoBatchAxis, Alias::kSameMemory, 0, InferOptimizer<0>},
    {"Momentum", kPipecDomain, PerInputElement<7>, NoBatchAxis, Alias::kSameMemory, 0, InferOptimizer<1>},
    {"Adam", kPipecDomain, PerInputElement<16>, NoBatchAxis, Alias::kSameMemory, 0, InferOptimizer<2>},
    {"Adagrad", kPipecDomain, PerInputElement<9>, NoBatchAxis, Alias::kSameMemory, 0, InferOptimizer<1>},
    {"Message", kPipecDomain, NoCost, NoBatchAxis, Alias::kNone, 0, InferMessage},
};

}  // namespace

absl::Span<const OpInfo> UpdateOps() { return kRows; }

}  // namespace pipec
