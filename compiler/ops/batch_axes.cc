#include "compiler/ops/batch_axes.h"

#include <cstring>

namespace pipec {

int NoBatchAxis(const Node&) { return -1; }

int BroadcastBatchAxis(const Node& node) {
  const Value* out = node.output(0);
  if (!out) return -1;
  const int rank = out->type.shape.size();
  int result = -1;
  for (const Value* in : node.inputs()) {
    if (!in || in->batch_axis < 0) continue;
    const int axis = in->batch_axis + rank - static_cast<int>(in->type.shape.size());
    if (axis < 0 || out->type.shape[axis] != in->type.shape[in->batch_axis]) return -1;
    if (result >= 0 && result != axis) return -1;
    result = axis;
  }
  return result;
}

int SameBatchAxis(const Node& node, int k) { return node.input(k) ? node.input(k)->batch_axis : -1; }

int64_t NormalizeAxis(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

std::optional<std::vector<int64_t>> ConstantInts(const Value* value) {
  if (!value || value->kind() != ValueKind::kConstant || value->type.dtype != DType::kInt64 ||
      !value->data.bytes) {
    return std::nullopt;
  }
  std::vector<int64_t> ints(value->data.bytes->size() / sizeof(int64_t));
  std::memcpy(ints.data(), value->data.bytes->data(), ints.size() * sizeof(int64_t));
  return ints;
}

}  // namespace pipec
