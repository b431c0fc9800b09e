// Ops that choose between values: Where, Trilu, OneHot.
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

Gradients Where(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Value* zero = b.Scalar(dy[0]->type.dtype, 0);
  Gradients gradients(3);
  if (wanted[1]) {
    gradients[1] = b.SumToShape(b.Emit("Where", {b.input(0), dy[0], zero}), b.input(1)->type.shape);
  }
  if (wanted[2]) {
    gradients[2] = b.SumToShape(b.Emit("Where", {b.input(0), zero, dy[0]}), b.input(2)->type.shape);
  }
  return gradients;
}

// What was set to zero gets gradient zero.
Gradients Trilu(GradientBuilder& b, Span dy, const Wanted& wanted) {
  std::vector<Value*> operands = {dy[0]};
  if (b.input(1)) operands.push_back(b.input(1));
  Gradients gradients(wanted.size());
  gradients[0] = b.Emit("Trilu", std::move(operands), b.forward()->attributes);
  return gradients;
}

// Y is values[1] at the index and values[0] elsewhere. Indices and depth carry no gradient.
Gradients OneHot(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(3);
  if (!wanted[2]) return gradients;
  const DType dtype = dy[0]->type.dtype;
  Attributes along;
  along.Set("axis", int64_t{0});
  Value* zero_and_one =
      b.Emit("Concat", {b.Reshape(b.Scalar(dtype, 0), {1}), b.Reshape(b.Scalar(dtype, 1), {1})}, along);
  Value* hit = b.Emit("OneHot", {b.input(0), b.input(1), zero_and_one}, b.forward()->attributes);
  if (!hit) return gradients;
  Value* on = b.SumToShape(b.Emit("Mul", {dy[0], hit}), {1});
  Value* off = b.Emit("Sub", {b.SumToShape(dy[0], {1}), on});
  gradients[2] = b.Emit("Concat", {off, on}, along);
  return gradients;
}

const GradientRuleEntry kRules[] = {{"Where", "", Where}, {"Trilu", "", Trilu}, {"OneHot", "", OneHot}};

}  // namespace

absl::Span<const GradientRuleEntry> SelectionRules() { return kRules; }

}  // namespace pipec
