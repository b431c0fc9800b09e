#include "compiler/onnx/in_place/stack_tensors.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/in_place/known_numbers.h"
#include "compiler/onnx/read/tensor_data.h"
#include "compiler/onnx/read/tensor_limits.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::StatusOr<Value*> MoveAxis(InPlaceImporter& importer, absl::string_view op, const std::string& name,
                                Value* value, Value* axes) {
  ASSIGN_OR_RETURN(const std::vector<Value*> results,
                   importer.Emit({.op = std::string(op), .name = name, .inputs = {value, axes}}));
  return results[0];
}

absl::StatusOr<Value*> EmptyStack(Graph& graph, const std::string& name, const onnx::ValueInfoProto& declared,
                                  int64_t axis) {
  TensorType type;
  const auto& tensor = declared.type().tensor_type();
  type.dtype = DTypeOf(tensor.elem_type());
  bool known = tensor.has_shape() && SizeOf(type.dtype) > 0;
  for (const auto& dim : tensor.shape().dim()) {
    known &= dim.has_dim_value() && dim.dim_value() >= 0;
    type.shape.push_back(dim.dim_value());
  }
  if (!known) {
    return absl::UnimplementedError(
        absl::StrCat("runs for no iteration, and its subgraph does not declare the type of '",
                     declared.name(), "', so that the type of a result is not known"));
  }
  ASSIGN_OR_RETURN(axis, AxisFromFront(axis, static_cast<int64_t>(type.shape.size()) + 1));
  type.shape.insert(type.shape.begin() + axis, 0);
  RETURN_IF_ERROR(CheckTensorLimits(type));
  return graph.AddConstant(name, std::move(type), "");
}

}  // namespace

absl::Status CheckParts(int64_t count) {
  constexpr int64_t kMaxParts = 65'536;
  if (count <= kMaxParts) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("would make ", count, " tensors, more than the supported ", kMaxParts));
}

absl::StatusOr<Value*> Stack(InPlaceImporter& importer, const std::string& name,
                             const std::vector<Value*>& parts, int64_t axis) {
  ASSIGN_OR_RETURN(axis, AxisFromFront(axis, static_cast<int64_t>(parts[0]->type.shape.size()) + 1));
  Value* axes = AddInts(importer.graph(), absl::StrCat(name, "/axis"), {axis});
  std::vector<Value*> rows;
  for (Value* part : parts) {
    ASSIGN_OR_RETURN(Value * row, MoveAxis(importer, "Unsqueeze", absl::StrCat(name, "/row"), part, axes));
    rows.push_back(row);
  }
  return Concatenate(importer, name, rows, axis);
}

absl::StatusOr<Value*> Concatenate(InPlaceImporter& importer, const std::string& name,
                                   const std::vector<Value*>& parts, int64_t axis) {
  if (parts.size() == 1) {
    RETURN_IF_ERROR(AxisFromFront(axis, parts[0]->type.shape.size()).status());
    return parts[0];
  }
  NodeSpec spec{.op = "Concat", .name = name, .inputs = parts};
  spec.attributes.Set("axis", axis);
  ASSIGN_OR_RETURN(const std::vector<Value*> results, importer.Emit(std::move(spec)));
  return results[0];
}

absl::StatusOr<std::vector<Value*>> SplitInto(InPlaceImporter& importer, const std::string& name,
                                              Value* value, int64_t axis, const std::vector<int64_t>& lengths,
                                              bool drop_axis) {
  ASSIGN_OR_RETURN(axis, AxisFromFront(axis, value->type.shape.size()));
  std::vector<Value*> parts;
  if (lengths.size() == 1 && lengths[0] == value->type.shape[axis]) {
    parts = {value};
  } else if (!lengths.empty()) {
    NodeSpec split{.op = "Split",
                   .name = name,
                   .inputs = {value, AddInts(importer.graph(), absl::StrCat(name, "/split"), lengths)}};
    split.attributes.Set("axis", axis);
    ASSIGN_OR_RETURN(parts, importer.Emit(std::move(split), static_cast<int>(lengths.size())));
  }
  if (!drop_axis || parts.empty()) return parts;
  Value* axes = AddInts(importer.graph(), absl::StrCat(name, "/axis"), {axis});
  for (Value*& part : parts) {
    ASSIGN_OR_RETURN(part, MoveAxis(importer, "Squeeze", absl::StrCat(name, "/entry"), part, axes));
  }
  return parts;
}

absl::StatusOr<std::vector<Value*>> Unstack(InPlaceImporter& importer, const std::string& name, Value* value,
                                            int64_t axis) {
  ASSIGN_OR_RETURN(axis, AxisFromFront(axis, value->type.shape.size()));
  const int64_t count = value->type.shape[axis];
  RETURN_IF_ERROR(CheckParts(count));
  return SplitInto(importer, name, value, axis, std::vector<int64_t>(count, 1), true);
}

absl::StatusOr<Meaning> StackResults(InPlaceImporter& importer, const std::string& name,
                                     const std::vector<Meaning>& parts, const onnx::ValueInfoProto& declared,
                                     int64_t axis) {
  std::vector<Value*> tensors;
  for (const Meaning& part : parts) {
    if (std::holds_alternative<absl::Status>(part)) return part;
    ASSIGN_OR_RETURN(Value * tensor, TensorOf(part));
    tensors.push_back(tensor);
  }
  absl::StatusOr<Value*> stacked = tensors.empty() ? EmptyStack(importer.graph(), name, declared, axis)
                                                   : Stack(importer, name, tensors, axis);
  if (!stacked.ok()) return stacked.status();
  return Meaning(*stacked);
}

}  // namespace pipec
