#include "compiler/onnx/schema/emit_node.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "compiler/onnx/schema/infer.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/status.h"

namespace pipec {

absl::StatusOr<Node*> EmitNode(Graph& graph, NodeSpec spec, int outputs) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferTypes(spec, outputs));
  spec.outputs = std::move(types);
  Node* node = graph.AddNode(std::move(spec));
  SetBatchAxes(*node);
  return node;
}

Value* AddInts(Graph& graph, absl::string_view name, absl::Span<const int64_t> values) {
  std::string bytes(values.size() * sizeof(int64_t), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return graph.AddConstant(name, {DType::kInt64, {static_cast<int64_t>(values.size())}}, std::move(bytes));
}

Value* AddInt(Graph& graph, absl::string_view name, int64_t value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return graph.AddConstant(name, {DType::kInt64, {}}, std::move(bytes));
}

Value* AddBool(Graph& graph, absl::string_view name, bool value) {
  return graph.AddConstant(name, {DType::kBool, {}}, std::string(1, value ? '\1' : '\0'));
}

Value* AddFloat(Graph& graph, absl::string_view name, float value) {
  std::string bytes(sizeof(float), '\0');
  std::memcpy(bytes.data(), &value, sizeof(float));
  return graph.AddConstant(name, {DType::kFloat32, {}}, std::move(bytes));
}

}  // namespace pipec
