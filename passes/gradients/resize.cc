// Resize is linear, one axis after the other: along an axis, Y = M X. M is what Resize makes of the identity, with
// the same attributes, so that every mode and every coordinate is the forward op's; dX = M^T dY. The region of
// interest does not learn.
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

// The places of the axes in `sizes`: k, and with a kept aspect ratio the one whose ratio all axes take.
std::vector<int> Deciding(const std::string& policy, const std::vector<int64_t>& sizes,
                          const std::vector<int64_t>& from, int k) {
  if (policy == "stretch") return {k};
  int decides = 0;
  for (int i = 1; i < sizes.size(); ++i) {
    const int64_t own = sizes[i] * from[decides], other = sizes[decides] * from[i];
    if (policy == "not_larger" ? own < other : own > other) decides = i;
  }
  return decides == k ? std::vector<int>{k} : std::vector<int>{k, decides};
}

std::vector<Value*> Resize(GradientBuilder& b, absl::Span<Value* const> dy, const std::vector<bool>& wanted) {
  std::vector<Value*> gradients(wanted.size());
  if (!wanted[0]) return gradients;
  const Attributes& forward = b.forward()->attributes;
  const std::string policy = forward.String("keep_aspect_ratio_policy", "stretch");
  const bool crops = forward.String("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  const absl::StatusOr<std::vector<float>> scales = Scales(b.input(2));
  if (!scales.ok()) {
    b.Fail(scales.status());
    return gradients;
  }
  const Shape &x = b.input(0)->type.shape, &y = dy[0]->type.shape;
  std::vector<int64_t> axes = forward.Ints("axes"), from, sizes;
  if (axes.empty()) {
    axes.resize(x.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) {
    axis += axis < 0 ? x.size() : 0;
    from.push_back(x[axis]);
    sizes.push_back(y[axis]);
  }
  if (policy != "stretch") sizes = b.ConstantInts(b.input(3));
  if (!b.status().ok()) return gradients;
  const int count = static_cast<int>(axes.size());
  Value* dx = dy[0];
  for (int k = 0; k < count && dx; ++k) {
    const int64_t axis = axes[k];
    const std::vector<int> deciding = Deciding(policy, sizes, from, k);
    const bool whole = from[deciding.back()] == sizes[deciding.back()];
    if (!crops && x[axis] == y[axis] && (scales->empty() ? whole : (*scales)[k] == 1)) continue;
    Attributes attributes = forward;
    attributes.Set("axes", deciding.size() == 1 ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 2});
    attributes.Set("extrapolation_value", 0.0f);
    Value* m = b.Emit("EyeLike", {b.Zeros({dx->type.dtype, {x[axis], x[axis]}})});
    // What decides is an axis behind, along which all is the same.
    const int64_t behind = deciding.size() == 1 ? 1 : from[deciding[1]];
    if (behind > 1)
      m = b.Emit("Expand", {b.Reshape(m, {x[axis], x[axis], 1}), b.Ints({x[axis], x[axis], behind})});
    if (behind == 1 && deciding.size() == 2) m = b.Reshape(m, {x[axis], x[axis], 1});
    Value* roi = crops ? b.Emit("Gather", {b.input(1), b.Ints({k, count + k})}) : nullptr;
    if (!scales->empty()) {
      m = b.Emit("Resize", {m, roi, b.Floats({(*scales)[k]})}, std::move(attributes));
    } else {
      std::vector<int64_t> to;
      for (int i : deciding) to.push_back(sizes[i]);
      m = b.Emit("Resize", {m, roi, nullptr, b.Ints(to)}, std::move(attributes));
    }
    if (deciding.size() == 2) {
      m = b.Reshape(b.Emit("Slice", {m, b.Ints({0}), b.Ints({1}), b.Ints({2})}), {y[axis], x[axis]});
    }
    dx = m ? ProductAlong(b, dx, axis, m) : nullptr;
  }
  gradients[0] = dx;
  return gradients;
}

const GradientRuleEntry kRules[] = {{"Resize", "", Resize}};

}  // namespace

absl::Span<const GradientRuleEntry> ResizeRules() { return kRules; }

}  // namespace pipec
