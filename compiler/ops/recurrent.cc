// RNN, GRU and LSTM with their gradients: (X, W, R, ...), where W is (directions, gates * H, input).
#include "absl/strings/str_cat.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Every row of X meets W, and every state R.
template <int kTimes>
NodeCost RecurrentCost(const Node& node) {
  const Shape& x = node.input(0)->type.shape;
  const double rows = static_cast<double>(x[0]) * static_cast<double>(x[1]);
  const double weights = static_cast<double>(Elements(node.input(1)) + Elements(node.input(2)));
  return {2.0 * kTimes * rows * weights, BytesOf(node)};
}

// What the last result is: the gradient of the cell's first state, or rows as H has them.
enum class More { kNothing, kState, kRows };

template <More kMore>
InferredTypes InferRecurrentGrad(const NodeSpec& spec) {
  constexpr int kResults = kMore == More::kNothing ? 4 : 5;
  RETURN_IF_ERROR(CheckOperands(spec, 3, 10));
  if (spec.inputs.size() != 10) return BadOperands(spec, "there must be 10, absent ones marked");
  RETURN_IF_ERROR(CheckOutputs(spec, kResults, kResults));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  const TensorType &x = TypeOf(spec, 0), &w = TypeOf(spec, 1), &r = TypeOf(spec, 2);
  if (x.shape.size() != 3 || w.shape.size() != 3 || r.shape.size() != 3)
    return BadOperands(spec, "X, W and R must have rank 3");
  const bool batch_first = spec.attributes.Int("layout", 0) != 0;
  const int64_t steps = x.shape[batch_first], batch = x.shape[!batch_first], rows = steps * batch;
  const int64_t directions = w.shape[0], gates = w.shape[1], hidden = r.shape[2];
  const auto type = [&](Shape shape) { return TensorType{x.dtype, std::move(shape)}; };
  const TensorType state =
      type(batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden});
  const TensorType row = type({directions, rows, hidden});
  const TensorType y =
      type(batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden});
  const TensorType wanted[] = {x,
                               type({directions, gates, x.shape[2]}),
                               type({directions, gates, hidden}),
                               type({directions, 2 * gates}),
                               {DType::kInt32, {batch}},
                               state,
                               state,
                               y,
                               state,
                               state};
  for (int k = 0; k < 10; ++k) {
    if (Present(spec, k) && TypeOf(spec, k) != wanted[k])
      return BadOperands(spec, absl::StrCat("operand ", k, " must be ", ToString(wanted[k])));
  }
  std::vector<TensorType> types = {x, type({directions, rows, gates}), row, state};
  if (kMore != More::kNothing) types.push_back(kMore == More::kState ? state : row);
  return types;
}

const OpInfo kRows[] = {
    {"RNN", "", RecurrentCost<1>},
    {"GRU", "", RecurrentCost<1>},
    {"LSTM", "", RecurrentCost<1>},
    {"RNNGrad", kPipecDomain, RecurrentCost<2>, NoBatchAxis, Alias::kNone, 0,
     InferRecurrentGrad<More::kNothing>},
    {"GRUGrad", kPipecDomain, RecurrentCost<2>, NoBatchAxis, Alias::kNone, 0,
     InferRecurrentGrad<More::kRows>},
    {"LSTMGrad", kPipecDomain, RecurrentCost<2>, NoBatchAxis, Alias::kNone, 0,
     InferRecurrentGrad<More::kState>},
};

}  // namespace

absl::Span<const OpInfo> RecurrentOps() { return kRows; }

}  // namespace pipec
