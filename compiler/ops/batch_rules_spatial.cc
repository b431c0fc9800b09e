// Images and signals: (N, C, D1, D2, ...), where N is the batch.
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/batch_rules.h"

namespace pipec {
namespace {

// Every channel of a sample reads every other: only N is kept apart. Weights have no batch.
int Convolution(const Node& node, int) { return LeadingBatchAxis(node, {0}); }
// (X, offset, mask) by sample, W and B not: X, W, offset, B, mask.
int Deformable(const Node& node, int) { return LeadingBatchAxis(node, {0, 2, 4}); }
int WithGrid(const Node& node, int) { return LeadingBatchAxis(node, {0, 1}); }

// Every channel by itself.
int Pool(const Node& node, int) {
  const int axis = SameBatchAxis(node);
  return axis <= 1 ? axis : -1;
}
int Unpool(const Node& node, int) { return LeadingBatchAxis(node, {0, 1}); }

// Kept if its size is: then nothing was interpolated, cut or added along it.
int Resampled(const Node& node, int k) {
  const int axis = SameBatchAxis(node);
  if (axis < 0 || node.attributes.String("coordinate_transformation_mode") == "tf_crop_and_resize") return -1;
  return node.output(k)->type.shape[axis] == node.input(0)->type.shape[axis] ? axis : -1;
}

// (signal [N, ..., 2], length?, axis?): along one axis, the last holds real and imaginary part.
int Fourier(const Node& node, int) {
  if (SameBatchAxis(node) + 1 == static_cast<int>(node.input(0)->type.shape.size())) return -1;
  if (!node.input(2)) return BatchAxisBeside(node, -2);
  auto axis = ConstantInts(node.input(2));
  return axis && axis->size() == 1 ? BatchAxisBeside(node, axis->front()) : -1;
}

const BatchRule kRules[] = {
    {"Conv", Convolution},
    {"ConvTranspose", Convolution},
    {"ConvInteger", Convolution},
    {"QLinearConv", Convolution},
    {"DeformConv", Deformable},
    {"Col2Im", Convolution},
    {"DepthToSpace", Convolution},
    {"SpaceToDepth", Convolution},
    {"AveragePool", Pool},
    {"MaxPool", Pool},
    {"LpPool", Pool},
    {"GlobalAveragePool", Pool},
    {"GlobalMaxPool", Pool},
    {"GlobalLpPool", Pool},
    {"MaxUnpool", Unpool},
    {"Resize", Resampled},
    {"CenterCropPad", Resampled},
    {"GridSample", WithGrid},
    {"AffineGrid", Convolution},
    {"STFT", Convolution},
    {"DFT", Fourier},
};

}  // namespace

absl::Span<const BatchRule> SpatialBatchRules() { return kRules; }

}  // namespace pipec
