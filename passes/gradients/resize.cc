// Resize is linear, one axis after the other: along an axis, Y = M X. M is what Resize makes of the identity, with
// the same attributes, so that every mode and every coordinate is the forward op's; dX = M^T dY.
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "passes/evaluate.h"
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

// The scales, if they are what the node gives.
absl::StatusOr<std::vector<float>> Scales(const Value* scales) {
  if (!scales || scales->type.elements() == 0) return std::vector<float>();
  if (scales->kind() != ValueKind::kConstant) return absl::UnimplementedError("scales that are not constant");
  const absl::StatusOr<std::string> bytes = ReadData(*scales);
  if (!bytes.ok()) return bytes.status();
  std::vector<float> values(bytes->size() / sizeof(float));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

// y @ m along one axis.
Value* ProductAlong(GradientBuilder& b, Value* y, int64_t axis, Value* m) {
  std::vector<int64_t> order(y->type.shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order.back());
  Attributes swapped;
  swapped.Set("perm", order);
  const bool last = axis + 1 == static_cast<int64_t>(order.size());
  if (!last) y = b.Emit("Transpose", {y}, swapped);
  y = b.Emit("FusedMatMul", {y, m}, {}, kPipecDomain);
  return last ? y : b.Emit("Transpose", {y}, swapped);
}

std::vector<Value*> Resize(GradientBuilder& b, absl::Span<Value* const> dy, const std::vector<bool>& wanted) {
  std::vector<Value*> gradients(wanted.size());
  const Attributes& forward = b.forward()->attributes;
  const std::string policy = forward.String("keep_aspect_ratio_policy", "stretch");
  if (forward.String("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" ||
      policy != "stretch") {
    b.Fail(absl::UnimplementedError("tf_crop_and_resize, or a kept aspect ratio"));
    return gradients;
  }
  const absl::StatusOr<std::vector<float>> scales = Scales(b.input(2));
  if (!scales.ok()) {
    b.Fail(scales.status());
    return gradients;
  }
  const Shape &x = b.input(0)->type.shape, y = dy[0]->type.shape;
  std::vector<int64_t> axes = forward.Ints("axes");
  if (axes.empty()) {
    axes.resize(x.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  Value* dx = dy[0];
  for (int k = 0; k < axes.size() && dx; ++k) {
    const int64_t axis = axes[k] < 0 ? axes[k] + x.size() : axes[k];
    const bool idle = x[axis] == y[axis] && (scales->empty() || (*scales)[k] == 1);
    if (idle) continue;
    Attributes attributes = forward;
    attributes.Set("axes", std::vector<int64_t>{0});
    Value* identity = b.Emit("EyeLike", {b.Zeros({dx->type.dtype, {x[axis], x[axis]}})});
    Value* m = scales->empty()
                   ? b.Emit("Resize", {identity, nullptr, nullptr, b.Ints({y[axis]})}, std::move(attributes))
                   : b.Emit("Resize", {identity, nullptr, b.Floats({(*scales)[k]})}, std::move(attributes));
    dx = m ? ProductAlong(b, dx, axis, m) : nullptr;
  }
  gradients[0] = dx;
  return gradients;
}

const GradientRuleEntry kRules[] = {{"Resize", "", Resize}};

}  // namespace

absl::Span<const GradientRuleEntry> ResizeRules() { return kRules; }

}  // namespace pipec
