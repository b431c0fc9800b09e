// RNN, GRU and LSTM: a helper op goes back through time and gives the gradients of the inputs and of what enters
// the gates (compiler/ops/README.md); those of W, R and B are products and sums of that, nodes of their own.
#include "absl/strings/str_cat.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

// a^T b for each direction.
Value* Product(GradientBuilder& b, Value* left, Value* right) {
  Attributes attributes;
  attributes.Set("trans_a", int64_t{1});
  return b.Emit("FusedMatMul", {left, right}, std::move(attributes), kPipecDomain);
}

Value* SumOfRows(GradientBuilder& b, Value* rows) {
  Attributes attributes;
  attributes.Set("keepdims", int64_t{0});
  return b.Emit("ReduceSum", {rows, b.Ints({1})}, std::move(attributes));
}

Value* Joined(GradientBuilder& b, std::vector<Value*> parts) {
  Attributes attributes;
  attributes.Set("axis", int64_t{1});
  return b.Emit("Concat", std::move(parts), std::move(attributes));
}

Value* Gates(GradientBuilder& b, Value* d_gates, int64_t first, int64_t end) {
  return b.Emit("Slice", {d_gates, b.Ints({first}), b.Ints({end}), b.Ints({2})});
}

Gradients Recurrent(GradientBuilder& b, Span dy, const Wanted& wanted) {
  const Node& node = *b.forward();
  const bool is_gru = node.Is("GRU"), is_lstm = node.Is("LSTM");
  Gradients gradients(wanted.size());
  if (b.input(7)) {
    b.Fail(absl::UnimplementedError("peephole weights, operand P"));
    return gradients;
  }
  std::vector<Value*> operands;
  for (int i = 0; i < 7; ++i) operands.push_back(b.input(i));
  for (int k = 0; k < 3; ++k) operands.push_back(k < dy.size() ? dy[k] : nullptr);
  const std::vector<Value*> made = b.EmitAll(absl::StrCat(node.op(), "Grad"), std::move(operands),
                                             node.attributes, kPipecDomain, is_gru || is_lstm ? 5 : 4);
  if (!b.status().ok()) return gradients;
  Value *const d_gates = made[1], *const h = made[2];
  const int64_t hidden = h->type.shape[2];
  // What R meets: for a GRU two gates see h, the third r * h, or what r multiplies sees h.
  const bool linear = is_gru && node.attributes.Int("linear_before_reset") != 0;
  Value* first = is_gru ? Gates(b, d_gates, 0, 2 * hidden) : d_gates;
  const auto want = [&](int i) { return i < wanted.size() && wanted[i]; };
  if (want(0)) gradients[0] = made[0];
  if (want(1)) {
    const Shape& x = b.input(0)->type.shape;
    gradients[1] = Product(b, d_gates, b.Reshape(b.input(0), {x[0] * x[1], x[2]}));
  }
  if (want(2)) {
    gradients[2] = Product(b, first, h);
    if (is_gru) {
      Value* third =
          linear ? Product(b, made[4], h) : Product(b, Gates(b, d_gates, 2 * hidden, 3 * hidden), made[4]);
      gradients[2] = Joined(b, {gradients[2], third});
    }
  }
  if (want(3)) {
    Value* sums = SumOfRows(b, d_gates);
    gradients[3] =
        linear ? Joined(b, {sums, SumOfRows(b, first), SumOfRows(b, made[4])}) : Joined(b, {sums, sums});
  }
  if (want(5)) gradients[5] = made[3];
  if (want(6)) gradients[6] = made[4];
  return gradients;
}

const GradientRuleEntry kRules[] = {{"RNN", "", Recurrent}, {"GRU", "", Recurrent}, {"LSTM", "", Recurrent}};

}  // namespace

absl::Span<const GradientRuleEntry> RecurrentRules() { return kRules; }

}  // namespace pipec
