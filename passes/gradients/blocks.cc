// Ops that lay blocks and places anew: DepthToSpace, SpaceToDepth, Col2Im, MaxUnpool. Each is linear and moves
// elements, so that its gradient reads dY where the op wrote.
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

Attributes BlockSize(GradientBuilder& b) {
  Attributes attributes;
  attributes.Set("blocksize", b.forward()->attributes.Int("blocksize"));
  return attributes;
}

// SpaceToDepth is the inverse in mode DCR. In mode CRD the channel stands before the block in depth:
// (N, C, H, b, W, b) back to (N, C, b, b, H, W).
Gradients DepthToSpace(GradientBuilder& b, Span dy, const Wanted&) {
  if (b.forward()->attributes.String("mode", "DCR") == "DCR")
    return {b.Emit("SpaceToDepth", {dy[0]}, BlockSize(b))};
  const Shape& x = b.input(0)->type.shape;
  const int64_t side = b.forward()->attributes.Int("blocksize"), channels = x[1] / (side * side);
  Attributes order;
  order.Set("perm", std::vector<int64_t>{0, 1, 3, 5, 2, 4});
  Value* blocks = b.Reshape(dy[0], {x[0], channels, x[2], side, x[3], side});
  return {b.Reshape(b.Emit("Transpose", {blocks}, std::move(order)), x)};
}

Gradients SpaceToDepth(GradientBuilder& b, Span dy, const Wanted&) {
  return {b.Emit("DepthToSpace", {dy[0]}, BlockSize(b))};
}

struct BlockAxis {
  int64_t padded, size, step, dilation, count;
};

// The places that the taps of all blocks have in the padded image, taps first.
std::vector<int64_t> PlacesOfTaps(const std::vector<BlockAxis>& axes) {
  std::vector<int64_t> places = {0};
  const auto spread = [&](const auto& offsets_of) {
    for (size_t i = 0; i < axes.size(); ++i) {
      int64_t stride = 1;
      for (size_t k = i + 1; k < axes.size(); ++k) stride *= axes[k].padded;
      std::vector<int64_t> wider;
      for (int64_t place : places) {
        const auto [count, step] = offsets_of(axes[i]);
        for (int64_t k = 0; k < count; ++k) wider.push_back(place + k * step * stride);
      }
      places = std::move(wider);
    }
  };
  spread([](const BlockAxis& axis) { return std::pair(axis.size, axis.dilation); });
  spread([](const BlockAxis& axis) { return std::pair(axis.count, axis.step); });
  return places;
}

// The blocks were added up over the image: every tap reads dY, 0 in the padding, as torch.nn.functional.unfold.
Gradients Col2Im(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  const std::vector<int64_t> block = b.ConstantInts(b.input(2));
  if (!b.status().ok()) return gradients;
  const Attributes& forward = b.forward()->attributes;
  const Shape &x = b.input(0)->type.shape, &y = dy[0]->type.shape;
  const int rank = static_cast<int>(block.size());
  const auto or_all = [](std::vector<int64_t> values, size_t count, int64_t value) {
    return values.empty() ? std::vector<int64_t>(count, value) : values;
  };
  const std::vector<int64_t> steps = or_all(forward.Ints("strides"), rank, 1),
                             dilations = or_all(forward.Ints("dilations"), rank, 1),
                             pads = or_all(forward.Ints("pads"), 2 * rank, 0);
  std::vector<BlockAxis> axes;
  std::vector<int64_t> padding(2 * y.size(), 0);
  for (int i = 0; i < rank; ++i) {
    BlockAxis axis{pads[i] + y[2 + i] + pads[rank + i], block[i], steps[i], dilations[i], 0};
    axis.count = (axis.padded - axis.dilation * (axis.size - 1) - 1) / axis.step + 1;
    padding[2 + i] = pads[i];
    padding[y.size() + 2 + i] = pads[rank + i];
    axes.push_back(axis);
  }
  int64_t places = 1;
  for (const BlockAxis& axis : axes) places *= axis.padded;
  Attributes last;
  last.Set("axis", int64_t{2});
  Value* padded = b.Reshape(b.Emit("Pad", {dy[0], b.Ints(padding)}), {y[0], y[1], places});
  Value* taps = b.Emit("Gather", {padded, b.Ints(PlacesOfTaps(axes))}, std::move(last));
  gradients[0] = b.Reshape(taps, x);
  return gradients;
}

// What MaxPool read lies inside of Y, at its beginning, if output_shape makes Y larger.
Gradients MaxUnpool(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(wanted.size());
  const Shape& x = b.input(0)->type.shape;
  const int rank = static_cast<int>(x.size()) - 2;
  const Attributes& forward = b.forward()->attributes;
  const std::vector<int64_t> kernel = forward.Ints("kernel_shape"), pads = forward.Ints("pads");
  std::vector<int64_t> strides = forward.Ints("strides");
  if (strides.empty()) strides.assign(rank, 1);
  std::vector<int64_t> starts(rank, 0), ends, axes;
  for (int i = 0; i < rank; ++i) {
    const int64_t padding = pads.empty() ? 0 : pads[i] + pads[rank + i];
    ends.push_back((x[2 + i] - 1) * strides[i] + kernel[i] - padding);
    axes.push_back(2 + i);
  }
  Value* pooled = dy[0];
  if (b.input(2)) pooled = b.Emit("Slice", {dy[0], b.Ints(starts), b.Ints(ends), b.Ints(axes)});
  if (!pooled) return gradients;
  Attributes first;
  first.Set("axis", int64_t{0});
  gradients[0] =
      b.Emit("Gather", {b.Reshape(pooled, {pooled->type.elements()}), b.input(1)}, std::move(first));
  return gradients;
}

const GradientRuleEntry kRules[] = {{"DepthToSpace", "", DepthToSpace},
                                    {"SpaceToDepth", "", SpaceToDepth},
                                    {"Col2Im", "", Col2Im},
                                    {"MaxUnpool", "", MaxUnpool}};

}  // namespace

absl::Span<const GradientRuleEntry> BlockRules() { return kRules; }

}  // namespace pipec
