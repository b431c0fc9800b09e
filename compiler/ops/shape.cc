// Ops that change the shape and not the elements, and those that make shapes and constants.
#include <algorithm>

#include "compiler/ops/batch_axes.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"

namespace pipec {
namespace {

// The samples stay apart if as many elements lie before the axis as before, and the axis still holds a whole
// number of entries for each sample: [B,T,H] -> [B*T,H] keeps axis 0, and back. An axis of 1 is kept in its
// place if it can be. One sample behind other axes that is merged, [L,1,H,D] -> [L,H*D], may have gone to the
// axis before or behind, [L*B,H*D] or [L,B*H*D]: then only what the result is already known to have is kept,
// from an import with more samples (compiler/onnx/batch/import_batch.h).
int ReshapeBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  if (axis < 0) return -1;
  const Shape& in = node.input(0)->type.shape;
  const Shape& out = node.output(0)->type.shape;
  const int64_t samples = std::max<int64_t>(SamplesOf(node.graph()), 1);
  const int64_t before = NumElements(absl::MakeSpan(in).first(axis));
  const int rank = out.size();
  auto fits = [&](int j) {
    return j < rank && NumElements(absl::MakeSpan(out).first(j)) == before && out[j] % samples == 0;
  };
  // Of any size if `size` is 0.
  auto find = [&](int64_t size) {
    if (fits(axis) && (size == 0 || out[axis] == size)) return axis;
    for (int j = 0; j < rank; ++j) {
      if (fits(j) && (size == 0 || out[j] == size)) return j;
    }
    return -1;
  };
  if (samples > 1 || before == 1) return find(0);
  for (int64_t size : {int64_t{1}, in[axis]}) {
    if (const int found = find(size); found >= 0) return found;
  }
  const int known = node.output(0)->batch_axis;
  return known >= 0 && fits(known) ? known : -1;
}

int SqueezeBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  const Shape& in = node.input(0)->type.shape;
  std::vector<int64_t> axes;
  if (node.input(1)) {
    auto constant = ConstantInts(node.input(1));
    if (!constant) return ReshapeBatchAxis(node);
    for (int64_t a : *constant) axes.push_back(NormalizeAxis(a, in.size()));
  } else {
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i] == 1) axes.push_back(i);
    }
  }
  if (axis < 0 || std::find(axes.begin(), axes.end(), axis) != axes.end()) return -1;
  return axis - std::count_if(axes.begin(), axes.end(), [axis](int64_t a) { return a < axis; });
}

int UnsqueezeBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  auto axes = ConstantInts(node.input(1));
  if (!axes) return ReshapeBatchAxis(node);
  if (axis < 0) return -1;
  for (int64_t& a : *axes) a = NormalizeAxis(a, node.output(0)->type.shape.size());
  int kept = 0;  // axes of the operand met so far
  for (int j = 0; j < static_cast<int>(node.output(0)->type.shape.size()); ++j) {
    if (std::find(axes->begin(), axes->end(), j) != axes->end()) continue;
    if (kept++ == axis) return j;
  }
  return -1;
}

int TransposeBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  if (axis < 0) return -1;
  const std::vector<int64_t> permutation = node.attributes.Ints("perm");
  const int rank = node.input(0)->type.shape.size();
  if (permutation.empty()) return rank - 1 - axis;
  return std::find(permutation.begin(), permutation.end(), axis) - permutation.begin();
}

// The last two axes are positions of a matrix.
int TriluBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  return axis < static_cast<int>(node.input(0)->type.shape.size()) - 2 ? axis : -1;
}

const OpInfo kRows[] = {
    {"Reshape", "", nullptr, ReshapeBatchAxis, Alias::kView},
    {"Flatten", "", nullptr, ReshapeBatchAxis, Alias::kView},
    {"Squeeze", "", nullptr, SqueezeBatchAxis, Alias::kView},
    {"Unsqueeze", "", nullptr, UnsqueezeBatchAxis, Alias::kView},
    {"Identity", "", nullptr, nullptr, Alias::kView},
    {"Transpose", "", nullptr, TransposeBatchAxis},
    {"Expand", "", nullptr, nullptr},
    {"Trilu", "", nullptr, TriluBatchAxis},
    {"Shape", "", nullptr, NoBatchAxis},
    {"Size", "", nullptr, NoBatchAxis},
    {"Constant", "", nullptr, NoBatchAxis},
    {"ConstantOfShape", "", nullptr, NoBatchAxis},
    {"Range", "", nullptr, NoBatchAxis},
};

}  // namespace

absl::Span<const OpInfo> ShapeOps() { return kRows; }

}  // namespace pipec
