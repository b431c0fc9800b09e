#include "compiler/onnx/normalize/rules.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/status.h"

namespace pipec {

absl::Status NoCounterpart(const PendingNode& node, absl::string_view what) {
  return absl::UnimplementedError(
      absl::StrCat(what, " of opset ", node.opset, " is not supported; export with a newer opset"));
}

std::string NameOf(const PendingNode& node, absl::string_view part) {
  return absl::StrCat(node.spec.name.empty() ? node.spec.op : node.spec.name, "/", part);
}

void SetOperand(PendingNode& node, int index, Value* value) {
  if (node.spec.inputs.size() <= index) node.spec.inputs.resize(index + 1);
  node.spec.inputs[index] = value;
}

void IntsToOperand(PendingNode& node, absl::string_view attribute, int index) {
  if (!node.spec.attributes.Has(attribute)) return;
  SetOperand(node, index, AddInts(node.graph, NameOf(node, attribute), node.spec.attributes.Ints(attribute)));
  node.spec.attributes.Erase(attribute);
}

absl::StatusOr<Value*> AddBefore(PendingNode& node, NodeSpec spec) {
  spec.name = NameOf(node, spec.name);
  ASSIGN_OR_RETURN(Node * added, EmitNode(node.graph, std::move(spec)));
  return added->output(0);
}

absl::StatusOr<Value*> AddReshape(PendingNode& node, absl::string_view part, Value* value,
                                  absl::Span<const int64_t> shape) {
  Value* target = AddInts(node.graph, NameOf(node, absl::StrCat(part, "/shape")), shape);
  return AddBefore(node, {.op = "Reshape", .name = std::string(part), .inputs = {value, target}});
}

absl::StatusOr<Value*> AddCast(PendingNode& node, absl::string_view part, Value* value, DType dtype) {
  if (value->type.dtype == dtype) return value;
  NodeSpec cast{.op = "Cast", .name = std::string(part), .inputs = {value}};
  cast.attributes.Set("to", static_cast<int64_t>(dtype));
  return AddBefore(node, std::move(cast));
}

}  // namespace pipec
