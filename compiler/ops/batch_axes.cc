#include "compiler/ops/batch_axes.h"

#include <algorithm>
#include <cstring>

namespace pipec {
namespace {

template <typename T>
std::vector<int64_t> Ints(const std::string& bytes) {
  std::vector<T> ints(bytes.size() / sizeof(T));
  if (!ints.empty()) std::memcpy(ints.data(), bytes.data(), ints.size() * sizeof(T));
  return {ints.begin(), ints.end()};
}

}  // namespace

int64_t SamplesOf(const Graph& graph) {
  for (const Value* input : graph.inputs()) {
    if (input->batch_axis >= 0) return input->type.shape[input->batch_axis];
  }
  return 0;
}

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

int BatchAxisBeside(const Node& node, int64_t along) {
  const int axis = SameBatchAxis(node);
  return axis == NormalizeAxis(along, node.input(0)->type.shape.size()) ? -1 : axis;
}

int LeadingBatchAxis(const Node& node, std::initializer_list<int> operands) {
  int result = -1;
  for (int i = 0; i < static_cast<int>(node.inputs().size()); ++i) {
    const Value* in = node.input(i);
    if (!in || in->batch_axis < 0) continue;
    if (in->batch_axis != 0 || std::find(operands.begin(), operands.end(), i) == operands.end()) return -1;
    result = 0;
  }
  return result;
}

int64_t NormalizeAxis(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

std::optional<std::vector<int64_t>> ConstantInts(const Value* value) {
  if (!value || value->kind() != ValueKind::kConstant || !value->data.bytes) return std::nullopt;
  const std::string& bytes = *value->data.bytes;
  if (value->type.dtype == DType::kInt64) return Ints<int64_t>(bytes);
  if (value->type.dtype == DType::kInt32) return Ints<int32_t>(bytes);
  return std::nullopt;
}

}  // namespace pipec
