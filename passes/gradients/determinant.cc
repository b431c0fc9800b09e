// Det. d det(X) / dX is the matrix of cofactors (Jacobi's formula), which is there for a singular X too, unlike
// det(X) X^-T. Each cofactor is the determinant of what is left without its row and column.
#include "absl/strings/str_cat.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

// All cofactors take side^4 elements.
constexpr int64_t kMostSide = 64;

std::vector<Value*> Det(GradientBuilder& b, absl::Span<Value* const> dy, const std::vector<bool>&) {
  const Shape& x = b.input(0)->type.shape;
  const int64_t m = x.back();
  if (m > kMostSide) {
    b.Fail(absl::UnimplementedError(absl::StrCat("matrices of side ", m, "; wanted at most ", kMostSide)));
    return {nullptr};
  }
  if (m == 1) return {b.Reshape(dy[0], x)};
  std::vector<int64_t> minors;
  std::vector<float> signs;
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < m; ++column) {
      signs.push_back((row + column) % 2 == 0 ? 1 : -1);
      for (int64_t at = 0; at < m * m; ++at) {
        if (at / m != row && at % m != column) minors.push_back(at);
      }
    }
  }
  Shape flat(x.begin(), x.end() - 2), one = flat;
  flat.push_back(m * m);
  one.insert(one.end(), {1, 1});
  Attributes last, to;
  last.Set("axis", int64_t{-1});
  to.Set("to", static_cast<int64_t>(dy[0]->type.dtype));
  Value* places = b.Reshape(b.Ints(minors), {m * m, m - 1, m - 1});
  Value* left = b.Emit("Gather", {b.Reshape(b.input(0), flat), places}, std::move(last));
  Value* sign = b.Emit("Cast", {b.Floats(signs)}, std::move(to));
  Value* cofactors = b.Reshape(b.Emit("Mul", {b.Emit("Det", {left}), sign}), x);
  return {b.Emit("Mul", {cofactors, b.Reshape(dy[0], one)})};
}

const GradientRuleEntry kRules[] = {{"Det", "", Det}};

}  // namespace

absl::Span<const GradientRuleEntry> DeterminantRules() { return kRules; }

}  // namespace pipec
