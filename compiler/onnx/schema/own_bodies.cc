#include "compiler/onnx/schema/own_bodies.h"

#include "absl/strings/str_cat.h"
#include "compiler/onnx/schema/function_body.h"

namespace pipec {
namespace {

// What a body begins with: 0 and 1 of X's type.
constexpr char kNumbers[] =
    "zero_f = Constant <value_float = 0.0> ()\n zero = CastLike (zero_f, X)\n"
    "one_f = Constant <value_float = 1.0> ()\n one = CastLike (one_f, X)\n";
constexpr char kAlpha[] =
    "alpha_f = Constant <value_float: float = @alpha> ()\n alpha = CastLike (alpha_f, X)\n";
constexpr char kPositive[] = "positive = Less (zero, X)\n";

struct Own {
  absl::string_view op, attributes, inputs, body;
  bool alpha, positive;
};

constexpr Own kBodies[] = {
    // At 0 the slope is that of the negative side, as torch.nn.functional.leaky_relu.
    {"LeakyRelu", "alpha", "X", "scaled = Mul (alpha, X)\n Y = Where (positive, X, scaled)\n", true, true},
    {"PRelu", "", "X, slope", "scaled = Mul (slope, X)\n Y = Where (positive, X, scaled)\n", false, true},
    // exp sees no positive number: it would overflow, and infinity times a gradient of 0 is no number.
    {"Elu", "alpha", "X",
     "negative = Where (positive, zero, X)\n power = Exp (negative)\n less = Sub (power, one)\n"
     "bent = Mul (alpha, less)\n Y = Where (positive, X, bent)\n",
     true, true},
    {"Selu", "alpha, gamma", "X",
     "gamma_f = Constant <value_float: float = @gamma> ()\n gamma = CastLike (gamma_f, X)\n"
     "negative = Where (positive, zero, X)\n power = Exp (negative)\n less = Sub (power, one)\n"
     "bent = Mul (alpha, less)\n both = Where (positive, X, bent)\n Y = Mul (gamma, both)\n",
     true, true},
    // Flat at both ends, their corners included, as torch.nn.functional.hardsigmoid and, made of it, hardswish.
    {"HardSigmoid", "alpha, beta", "X",
     "beta_f = Constant <value_float: float = @beta> ()\n beta = CastLike (beta_f, X)\n"
     "scaled = Mul (alpha, X)\n line = Add (scaled, beta)\n above = Less (zero, line)\n below = Less (line, "
     "one)\n"
     "capped = Where (below, line, one)\n Y = Where (above, capped, zero)\n",
     true, false},
    // max(x, 0) + log(1 + exp(-|x|)).
    {"Softplus", "", "X",
     "size = Abs (X)\n down = Neg (size)\n power = Exp (down)\n sum = Add (one, power)\n rest = Log (sum)\n"
     "ramp = Max (X, zero)\n Y = Add (ramp, rest)\n",
     false, false},
    // Without the largest, which is put back behind the logarithm, unless that is infinite.
    {"ReduceLogSumExp", "keepdims, noop_with_empty_axes", "X, axes",
     "most = ReduceMax <keepdims = 1, noop_with_empty_axes: int = @noop_with_empty_axes> (X, axes)\n"
     "infinite = IsInf (most)\n shift = Where (infinite, zero, most)\n rest = Sub (X, shift)\n power = Exp "
     "(rest)\n"
     "sum = ReduceSum <keepdims = 1, noop_with_empty_axes: int = @noop_with_empty_axes> (power, axes)\n"
     "log = Log (sum)\n all = Add (log, shift)\n"
     "Y = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (all, "
     "axes)\n",
     false, false},
    // The gradient of a norm of 0 is 0, as torch.linalg.vector_norm's.
    {"ReduceL2", "keepdims, noop_with_empty_axes", "X, axes",
     "square = Mul (X, X)\n"
     "sum = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> "
     "(square, axes)\n"
     "none = Equal (sum, zero)\n some = Where (none, one, sum)\n root = Sqrt (some)\n Y = Where (none, zero, "
     "root)\n",
     false, false},
};

}  // namespace

std::optional<std::string> OwnBody(absl::string_view op) {
  for (const Own& own : kBodies) {
    if (own.op != op) continue;
    const std::string attributes = own.attributes.empty() ? "" : absl::StrCat("<", own.attributes, "> ");
    return absl::StrCat("<domain: \"\", opset_import: [\"\" : ", NewestOpset(""), "]>\n", op, " ", attributes,
                        "(", own.inputs, ") => (Y)\n{\n", kNumbers, own.alpha ? kAlpha : "",
                        own.positive ? kPositive : "", own.body, "}\n");
  }
  return std::nullopt;
}

std::optional<std::string> OwnBody(const NodeSpec& spec) {
  if (!spec.domain.empty() || spec.inputs.empty() || !spec.inputs[0]) return std::nullopt;
  const DType dtype = spec.inputs[0]->type.dtype;
  // Squares of 16-bit floats overflow: the schema's body has them in float32.
  const bool narrow = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  if (!IsFloat(dtype) || (narrow && spec.op == "ReduceL2")) return std::nullopt;
  return OwnBody(spec.op);
}

}  // namespace pipec
