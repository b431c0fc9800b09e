// Arithmetic with broadcasting: every contribution is summed over the axes along which its operand was
// broadcast. At ties Max and Min share the gradient evenly among the operands that reach the extreme, as
// torch.maximum.
#include <cmath>

#include "passes/evaluate.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

Value* SumToInput(GradientBuilder& b, Value* gradient, int i) {
  return b.SumToShape(gradient, b.input(i)->type.shape);
}

// Also Sum: Y = X0 + X1 + ...
Gradients Add(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  for (int i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) gradients[i] = SumToInput(b, dy[0], i);
  }
  return gradients;
}

Gradients Mean(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Value* share = b.Emit("Mul", {dy[0], b.Scalar(dy[0]->type.dtype, 1.0 / wanted.size())});
  return Add(b, {share}, wanted);
}

Gradients Sub(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(2);
  if (wanted[0]) gradients[0] = SumToInput(b, dy[0], 0);
  if (wanted[1]) gradients[1] = b.Emit("Neg", {SumToInput(b, dy[0], 1)});
  return gradients;
}

Gradients Mul(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(2);
  if (wanted[0]) gradients[0] = SumToInput(b, b.Emit("Mul", {dy[0], b.input(1)}), 0);
  if (wanted[1]) gradients[1] = SumToInput(b, b.Emit("Mul", {dy[0], b.input(0)}), 1);
  return gradients;
}

// d(a/b)/da = 1/b; d(a/b)/db = -(a/b)/b.
Gradients Div(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(2);
  if (wanted[0]) gradients[0] = SumToInput(b, b.Emit("Div", {dy[0], b.input(1)}), 0);
  if (wanted[1]) {
    Value* ratio = b.Emit("Div", {b.output(0), b.input(1)});
    gradients[1] = b.Emit("Neg", {SumToInput(b, b.Emit("Mul", {dy[0], ratio}), 1)});
  }
  return gradients;
}

Gradients Neg(GradientBuilder& b, Span dy, const Wanted&) { return {b.Emit("Neg", {dy[0]})}; }

// The only element of a constant exponent, NaN if it is not that simple.
double ConstantExponent(const Value& value) {
  if (value.kind() != ValueKind::kConstant || value.type.elements() != 1) return NAN;
  const absl::StatusOr<std::string> bytes = ReadData(value);
  if (!bytes.ok()) return NAN;
  switch (value.type.dtype) {
    case DType::kFloat32:
      return *reinterpret_cast<const float*>(bytes->data());
    case DType::kFloat64:
      return *reinterpret_cast<const double*>(bytes->data());
    case DType::kInt64:
      return *reinterpret_cast<const int64_t*>(bytes->data());
    case DType::kInt32:
      return *reinterpret_cast<const int32_t*>(bytes->data());
    default:
      return NAN;
  }
}

// d x^e/dx = e x^(e-1), 0 where e = 0; d x^e/de = x^e log(x), 0 where x = 0 and e >= 0 (both as torch.pow).
Gradients Pow(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Value* x = b.input(0);
  Value* e = b.input(1);
  const DType dtype = x->type.dtype;
  Gradients gradients(2);
  if (wanted[0]) {
    Value* slope = nullptr;
    if (const double exponent = ConstantExponent(*e); !std::isnan(exponent)) {
      if (exponent == 0) return gradients;
      Value* power = exponent == 2 ? x : b.Emit("Pow", {x, b.Scalar(dtype, exponent - 1)});
      slope = b.Emit("Mul", {power, b.Scalar(dtype, exponent)});
    } else {
      Attributes to;
      to.Set("to", static_cast<int64_t>(dtype));
      if (e->type.dtype != dtype) e = b.Emit("Cast", {e}, to);
      Value* power = b.Emit("Pow", {x, b.Emit("Sub", {e, b.Scalar(dtype, 1)})});
      slope = b.Emit(
          "Where", {b.Emit("Equal", {e, b.Scalar(dtype, 0)}), b.Scalar(dtype, 0), b.Emit("Mul", {power, e})});
    }
    gradients[0] = SumToInput(b, b.Emit("Mul", {dy[0], slope}), 0);
  }
  if (wanted[1]) {
    Value* zero = b.Scalar(dtype, 0);
    Value* vanishes = b.Emit("And", {b.Emit("Equal", {x, zero}), b.Emit("Not", {b.Emit("Less", {e, zero})})});
    Value* slope = b.Emit("Where", {vanishes, zero, b.Emit("Mul", {b.output(0), b.Emit("Log", {x})})});
    gradients[1] = SumToInput(b, b.Emit("Mul", {dy[0], slope}), 1);
  }
  return gradients;
}

// The remainder of a division that rounds towards zero, as floats have it: d/da = 1, d/db = -trunc(a/b), as
// torch.fmod.
Gradients Mod(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(2);
  if (wanted[0]) gradients[0] = SumToInput(b, dy[0], 0);
  if (wanted[1]) {
    Value* whole = b.Emit("Sub", {b.input(0), b.output(0)});
    Value* quotient = b.Emit("Round", {b.Emit("Div", {whole, b.input(1)})});
    gradients[1] = b.Emit("Neg", {SumToInput(b, b.Emit("Mul", {dy[0], quotient}), 1)});
  }
  return gradients;
}

// d(1/x) = -1/x^2.
Gradients Reciprocal(GradientBuilder& b, Span dy, const Wanted&) {
  Value* square = b.Emit("Mul", {b.output(0), b.output(0)});
  return {b.Emit("Neg", {b.Emit("Mul", {dy[0], square})})};
}

// sign(x), 0 at 0 as torch.abs.
Gradients Abs(GradientBuilder& b, Span dy, const Wanted&) {
  Value* zero = b.Scalar(dy[0]->type.dtype, 0);
  Value* not_below = b.Emit("Where", {b.Emit("Greater", {b.input(0), zero}), dy[0], zero});
  return {b.Emit("Where", {b.Emit("Less", {b.input(0), zero}), b.Emit("Neg", {dy[0]}), not_below})};
}

// Also Min: the gradient goes to the operands that equal the result.
Gradients Max(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Attributes to;
  to.Set("to", static_cast<int64_t>(dy[0]->type.dtype));
  Gradients hits(wanted.size());
  Value* count = nullptr;
  for (int i = 0; i < wanted.size(); ++i) {
    hits[i] = b.Emit("Cast", {b.Emit("Equal", {b.input(i), b.output(0)})}, to);
    count = count ? b.Emit("Add", {count, hits[i]}) : hits[i];
  }
  Value* share = b.Emit("Div", {dy[0], count});
  Gradients gradients(wanted.size());
  for (int i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) gradients[i] = SumToInput(b, b.Emit("Mul", {share, hits[i]}), i);
  }
  return gradients;
}

const GradientRuleEntry kRules[] = {
    {"Add", "", Add}, {"Sum", "", Add}, {"Mean", "", Mean}, {"Mod", "", Mod}, {"Sub", "", Sub},
    {"Mul", "", Mul}, {"Div", "", Div}, {"Neg", "", Neg},   {"Pow", "", Pow}, {"Reciprocal", "", Reciprocal},
    {"Abs", "", Abs}, {"Max", "", Max}, {"Min", "", Max},
};

}  // namespace

absl::Span<const GradientRuleEntry> ArithmeticRules() { return kRules; }

}  // namespace pipec
