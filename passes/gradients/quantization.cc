// DequantizeLinear: Y = (X - zero point) * scale, where X and the zero point are integers: the scale alone learns.
// QuantizeLinear is flat between its steps.
#include "absl/strings/str_cat.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

// dScale is the sum of dY * (X - zero point) over what shares a scale: all, all but an axis, or blocks along it.
std::vector<Value*> DequantizeLinear(GradientBuilder& b, absl::Span<Value* const> dy,
                                     const std::vector<bool>& wanted) {
  std::vector<Value*> gradients(wanted.size());
  if (!wanted[1]) return gradients;
  const Value* scale = b.input(1);
  if (scale->type.dtype != dy[0]->type.dtype) {
    b.Fail(absl::UnimplementedError("a scale of another type than the result"));
    return gradients;
  }
  Value* one = b.Emit("Expand", {b.Scalar(scale->type.dtype, 1), b.Ints(scale->type.shape)});
  Value* steps = b.Emit("DequantizeLinear", {b.input(0), one, b.input(2)}, b.forward()->attributes);
  Value* product = b.Emit("Mul", {dy[0], steps});
  const Shape &y = dy[0]->type.shape, &s = scale->type.shape;
  int64_t axis = b.forward()->attributes.Int("axis", 1);
  if (axis < 0) axis += y.size();
  if (s.size() == y.size() && s.size() > 1) {
    if (y[axis] % s[axis] != 0) {
      b.Fail(absl::UnimplementedError(
          absl::StrCat("blocks of unequal size: ", y[axis], " entries, ", s[axis], " scales")));
      return gradients;
    }
    Shape blocks = y, kept = s;
    blocks[axis] = s[axis];
    blocks.insert(blocks.begin() + axis + 1, y[axis] / s[axis]);
    kept.insert(kept.begin() + axis + 1, 1);
    gradients[1] = b.Reshape(b.SumToShape(b.Reshape(product, blocks), kept), s);
  } else if (scale->type.elements() == 1) {
    gradients[1] = b.Reshape(b.SumToShape(product, {}), s);
  } else {
    Shape kept(y.size(), 1);
    kept[axis] = s[0];
    gradients[1] = b.Reshape(b.SumToShape(product, kept), s);
  }
  return gradients;
}

const GradientRuleEntry kRules[] = {{"DequantizeLinear", "", DequantizeLinear}};

}  // namespace

absl::Span<const GradientRuleEntry> QuantizationRules() { return kRules; }

}  // namespace pipec
