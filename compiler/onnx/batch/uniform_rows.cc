#include "compiler/onnx/batch/uniform_rows.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/schema/emit_node.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kMostNodes = 32;  // how far back a value is followed

// Contents from memory or from the file they lie in; empty if they are in neither.
std::string Contents(const Value& value) {
  const TensorData& data = value.data;
  if (data.bytes) return *data.bytes;
  std::string bytes;
  if (!data.file) return bytes;
  std::ifstream file(*data.file, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(data.offset));
  bytes.resize(value.type.bytes());
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) bytes.clear();
  return bytes;
}

struct Rows {
  int64_t outer, count, bytes;  // how often the axis comes, its size, bytes of one entry
};

Rows RowsOf(const TensorType& type, int axis) {
  const absl::Span<const int64_t> shape = type.shape;
  return {NumElements(shape.first(axis)), shape[axis],
          NumElements(shape.subspan(axis + 1)) * static_cast<int64_t>(SizeOf(type.dtype))};
}

bool HasEqualRows(const Value& value, int axis) {
  const std::string contents = Contents(value);
  if (contents.size() != value.type.bytes() || contents.empty()) return false;
  const Rows rows = RowsOf(value.type, axis);
  for (int64_t outer = 0; outer < rows.outer; ++outer) {
    const absl::string_view block =
        absl::string_view(contents).substr(outer * rows.count * rows.bytes, rows.count * rows.bytes);
    // Every entry equals the one before it.
    if (block.substr(rows.bytes) != block.substr(0, block.size() - rows.bytes)) return false;
  }
  return true;
}

bool Uniform(Value* value, int axis, int& budget);

// Whether some axis of operand 0 becomes `axis` of the result and is uniform, for ops whose other operands
// are but numbers: a target shape, axes, bounds.
bool ComesFromUniform(Node& node, int k, int axis, int& budget) {
  Value* operand = node.input(0);
  const auto is_number = [operand](const Value* in) {
    return !in || in == operand || (in->kind() == ValueKind::kConstant && in->type.shape.size() <= 1);
  };
  if (!operand || !std::all_of(node.inputs().begin(), node.inputs().end(), is_number)) return false;
  std::vector<int> axes_before;
  for (Value* in : node.inputs()) axes_before.push_back(in ? in->batch_axis : -1);
  for (Value* in : node.inputs()) {
    if (in) in->batch_axis = -1;
  }
  int from = -1;
  for (int a = 0; a < static_cast<int>(operand->type.shape.size()) && from < 0; ++a) {
    operand->batch_axis = a;
    // Only one entry a sample: merged axes are not followed.
    if (BatchAxisOf(node, k) == axis && operand->type.shape[a] == node.output(k)->type.shape[axis]) from = a;
  }
  for (size_t i = 0; i < axes_before.size(); ++i) {
    if (node.input(i)) node.input(i)->batch_axis = axes_before[i];
  }
  return from >= 0 && Uniform(operand, from, budget);
}

// Along an axis that was broadcast, or is uniform in every operand.
bool BroadcastsUniform(const Node& node, int axis, int& budget) {
  const int rank = node.output(0)->type.shape.size();
  return std::all_of(node.inputs().begin(), node.inputs().end(), [&](Value* in) {
    if (!in) return true;
    const int a = axis - (rank - static_cast<int>(in->type.shape.size()));
    return a < 0 || (in->type.shape[a] == 1 && node.output(0)->type.shape[axis] != 1) ||
           Uniform(in, a, budget);
  });
}

bool Uniform(Value* value, int axis, int& budget) {
  if (axis < 0 || axis >= static_cast<int>(value->type.shape.size()) || --budget < 0) return false;
  if (value->kind() == ValueKind::kConstant || value->kind() == ValueKind::kParameter) {
    return HasEqualRows(*value, axis);
  }
  Node* node = value->producer();
  if (!node) return false;
  if (node->Is("ConstantOfShape")) return true;
  const Shape& shape = value->type.shape;
  if (node->Is("Expand") || node->Is("Tile")) {
    const Value& data = *node->input(0);
    const int a = axis - (static_cast<int>(shape.size()) - static_cast<int>(data.type.shape.size()));
    if (a < 0 || data.type.shape[a] == 1) return true;
    return data.type.shape[a] == shape[axis] && Uniform(node->input(0), a, budget);
  }
  if (node->Is("Gather") && node->input(1)) {
    const int64_t rank = node->input(0)->type.shape.size();
    const int64_t picked = (node->attributes.Int("axis", 0) + rank) % rank;
    const int64_t a = axis - picked;
    if (a >= 0 && a < static_cast<int64_t>(node->input(1)->type.shape.size())) {
      return Uniform(node->input(1), static_cast<int>(a), budget);
    }
  }
  return IsBroadcast(node->op(), node->domain())
             ? BroadcastsUniform(*node, axis, budget)
             : ComesFromUniform(*node, value->output_index(), axis, budget);
}

}  // namespace

bool IsUniform(Value* value, int axis) {
  int budget = kMostNodes;
  return Uniform(value, axis, budget);
}

absl::StatusOr<Value*> UniformRows(Graph& graph, Value* value, int axis, int64_t count) {
  TensorType type = value->type;
  type.shape[axis] = count;
  const std::string name = absl::StrCat(value->name(), "/samples");
  const bool one = value->type.shape[axis] == 1;
  // One entry that learns goes on learning, for all.
  if (value->kind() == ValueKind::kConstant || (value->kind() == ValueKind::kParameter && !one)) {
    const std::string contents = Contents(*value);
    const Rows rows = RowsOf(value->type, axis);
    std::string bytes;
    bytes.reserve(type.bytes());
    for (int64_t outer = 0; outer < rows.outer; ++outer) {
      for (int64_t k = 0; k < count; ++k) bytes.append(contents, outer * rows.count * rows.bytes, rows.bytes);
    }
    return graph.AddConstant(name, type, std::move(bytes));
  }
  const bool fewer = count <= value->type.shape[axis];
  if (!one) {
    ASSIGN_OR_RETURN(Node * slice, EmitNode(graph, {.op = "Slice",
                                                    .name = name,
                                                    .inputs = {value, AddInts(graph, "starts", {0}),
                                                               AddInts(graph, "ends", {fewer ? count : 1}),
                                                               AddInts(graph, "axes", {axis})}}));
    value = slice->output(0);
    if (fewer) return value;
  }
  const std::vector<int64_t> shape(type.shape.begin(), type.shape.end());
  ASSIGN_OR_RETURN(
      Node * expand,
      EmitNode(graph, {.op = "Expand", .name = name, .inputs = {value, AddInts(graph, "shape", shape)}}));
  return expand->output(0);
}

}  // namespace pipec
