// Ops that pick or write by index.
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/batch_rules.h"

namespace pipec {
namespace {

int Rank(const Value* value) { return value->type.shape.size(); }

// The one axis on which the batched ones among the operands agree; -1 if they do not, or there is none.
int Agreed(const Node& node) {
  int result = -1;
  for (const Value* in : node.inputs()) {
    if (!in || in->batch_axis < 0) continue;
    if (result >= 0 && result != in->batch_axis) return -1;
    result = in->batch_axis;
  }
  return result;
}

// (data, indices): every operand has the rank of the result, whose shape is that of indices. Along any axis
// but the one that is picked from, entry i comes from entry i.
int GatherElements(const Node& node, int) {
  const Value *data = node.input(0), *indices = node.input(1);
  const int axis = Agreed(node);
  const int64_t picked = NormalizeAxis(node.attributes.Int("axis", 0), Rank(data));
  if (axis < 0) return -1;
  // Every sample's indices into data that all of them share.
  if (axis == picked) return data->batch_axis < 0 ? axis : -1;
  return data->type.shape[axis] == indices->type.shape[axis] ? axis : -1;
}

// (data, indices, updates): likewise, but all write into one result.
int ScatterElements(const Node& node, int) {
  const Value *data = node.input(0), *indices = node.input(1);
  const int axis = Agreed(node);
  if (axis < 0 || axis == NormalizeAxis(node.attributes.Int("axis", 0), Rank(data))) return -1;
  return data->type.shape[axis] == indices->type.shape[axis] ? axis : -1;
}

// (data, indices) -> indices.shape[:-1] + data.shape[batch_dims + indices.shape[-1]:]
int GatherND(const Node& node, int) {
  const Value *data = node.input(0), *indices = node.input(1);
  const int common = node.attributes.Int("batch_dims", 0);
  if (data->batch_axis < 0) return indices->batch_axis < Rank(indices) - 1 ? indices->batch_axis : -1;
  if (data->batch_axis < common) return Agreed(node);
  if (indices->batch_axis >= 0) return -1;
  const int picked = common + static_cast<int>(indices->type.shape.back());
  return data->batch_axis < picked ? -1 : Rank(indices) - 1 + data->batch_axis - picked;
}

// (data, indices, updates): indices address the first indices.shape[-1] axes of data.
int ScatterND(const Node& node, int) {
  const Value *data = node.input(0), *indices = node.input(1), *updates = node.input(2);
  const int addressed = indices->type.shape.back();
  if (indices->batch_axis >= 0 || data->batch_axis < addressed) return -1;
  const int aligned = Rank(indices) - 1 + data->batch_axis - addressed;
  return updates->batch_axis < 0 || updates->batch_axis == aligned ? data->batch_axis : -1;
}

int TopK(const Node& node, int) { return BatchAxisBeside(node, node.attributes.Int("axis", -1)); }

// (data, condition): without an axis all elements lie in one row.
int Compress(const Node& node, int) {
  if (!node.attributes.Has("axis") || SameBatchAxis(node, 1) >= 0) return -1;
  return BatchAxisBeside(node, node.attributes.Int("axis"));
}

// A row of X [N,C] is a sample's; X [C] is one row.
int TfIdfVectorizer(const Node& node, int) {
  return Rank(node.input(0)) == 2 ? LeadingBatchAxis(node, {0}) : -1;
}

const BatchRule kRules[] = {
    {"GatherElements", GatherElements},
    {"ScatterElements", ScatterElements},
    {"GatherND", GatherND},
    {"ScatterND", ScatterND},
    {"TfIdfVectorizer", TfIdfVectorizer},
    {"TopK", TopK},
    {"Compress", Compress},
};

}  // namespace

absl::Span<const BatchRule> IndexBatchRules() { return kRules; }

}  // namespace pipec
