// Turns 16-bit floats (float16, bfloat16) into float32 everywhere inside the model.
//   before: a = Cast<to = bfloat16>(x); y = MatMul(a, w)    w, a, y: bfloat16; x: float32; y an output
//   after:  a = Cast<to = float32>(x); y/float32 = MatMul(a, w); y = Cast<to = bfloat16>(y/float32)
// A weight is float32 in the graph: the master, which updates too small for 16 bits still change. In files
// (the model's, the plan's, an export) it keeps the model's type: TensorData::stored. Inputs and outputs keep
// their types too, by a Cast at the border; but for the outputs in training, which the loss is made of.
//
// Nothing is rounded to 16 bits inside the model any more, also where an exporter casts around every op: so
// results are nearer to exact ones than the model's own. Constants are those of the model. Masks such as
// -65504, the least float16, mask in float32 as well; what float16 makes infinite stays finite.
//
// Level model. First in the table: casts that lead nowhere now are for eliminate-identity, and what folds is
// then computed in float32.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int64_t kFloat = static_cast<int64_t>(DType::kFloat32);

TensorType Widened(TensorType type) {
  type.dtype = DType::kFloat32;
  return type;
}

std::shared_ptr<const std::string> Widened(DType dtype, absl::string_view bytes) {
  std::vector<float> wide;
  ToFloats(dtype, bytes, wide);
  return std::make_shared<const std::string>(reinterpret_cast<const char*>(wide.data()),
                                             wide.size() * sizeof(float));
}

// Attributes that name an element type, of a result or of what is computed inside.
constexpr absl::string_view kTypeAttributes[] = {
    "to", "dtype", "output_dtype", "output_datatype", "precision", "softmax_precision", "stash_type"};

bool WidenAttributes(Node& node) {
  std::vector<std::pair<std::string, Attribute>> changes;
  for (absl::string_view name : kTypeAttributes) {
    const int64_t code = node.attributes.Int(name);
    if (code == static_cast<int64_t>(DType::kFloat16) || code == static_cast<int64_t>(DType::kBFloat16)) {
      changes.emplace_back(name, kFloat);
    }
  }
  for (const auto& [name, attribute] : node.attributes) {
    const auto* literal = std::get_if<TensorLiteral>(&attribute);
    if (!literal || !IsSmallFloat(literal->type.dtype)) continue;
    changes.emplace_back(
        name, TensorLiteral{Widened(literal->type), Widened(literal->type.dtype, *literal->bytes)});
  }
  for (auto& [name, attribute] : changes) node.attributes.Set(name, std::move(attribute));
  return !changes.empty();
}

Value* AddCast(Graph& graph, Value* value, DType to, absl::string_view name, Node* before) {
  NodeSpec spec{.op = "Cast",
                .name = std::string(name),
                .inputs = {value},
                .outputs = {{to, value->type.shape}},
                .output_names = {std::string(name)}};
  spec.attributes.Set("to", static_cast<int64_t>(to));
  return graph.AddNode(std::move(spec), before)->output(0);
}

// The types that the outputs were declared with, by place; kUndefined for those that stay as they are. Inputs
// that are outputs too are not among them: they are delivered as they came.
std::vector<DType> SmallOutputs(const Graph& graph) {
  std::vector<DType> types;
  for (const Value* output : graph.outputs) {
    const bool stays = !IsSmallFloat(output->type.dtype) || output->kind() == ValueKind::kInput;
    types.push_back(stays ? DType::kUndefined : output->type.dtype);
  }
  return types;
}

void WidenInput(Graph& graph, Value* input) {
  if (input->uses().empty()) return;
  const std::vector<Value*> outputs = graph.outputs;
  Value* wide =
      AddCast(graph, input, DType::kFloat32, absl::StrCat(input->name(), "/float32"), graph.first_node());
  graph.ReplaceAllUses(input, wide);
  wide->producer()->SetInput(0, input);
  graph.outputs = outputs;
}

absl::Status WidenContents(Value& value) {
  TensorData& data = value.data;
  if (value.kind() == ValueKind::kParameter) {
    data.stored = value.type.dtype;
  } else {
    ASSIGN_OR_RETURN(const std::string bytes, ReadData(value));
    data = {.bytes = Widened(value.type.dtype, bytes)};
    data.length = data.bytes->size();
  }
  value.type = Widened(value.type);
  return absl::OkStatus();
}

// A Cast back behind each output, which takes the output's name; one for outputs that are the same value.
void NarrowOutputs(Graph& graph, const std::vector<DType>& types) {
  absl::flat_hash_map<Value*, Value*> narrowed;
  for (int k = 0; k < types.size(); ++k) {
    Value*& output = graph.outputs[k];
    if (types[k] == DType::kUndefined) continue;
    auto [it, added] = narrowed.emplace(output, nullptr);
    if (added) {
      const std::string name = output->name();
      const bool computed = output->kind() == ValueKind::kResult;
      if (computed) graph.Rename(output, absl::StrCat(name, "/float32"));
      it->second = AddCast(graph, output, types[k], computed ? name : absl::StrCat(name, "/", Name(types[k])),
                           nullptr);
      if (!computed) it->second->output_name = name;
    }
    output = it->second;
  }
}

}  // namespace

absl::StatusOr<bool> WidenSmallFloats(Module& module, const PassContext&) {
  Graph& graph = module.graph;
  const std::vector<DType> outputs = SmallOutputs(graph);
  bool changed = false, small_weights = false;
  for (Node* node : graph.Nodes()) {
    if (node->Is("BitCast") &&
        (IsSmallFloat(node->input(0)->type.dtype) || IsSmallFloat(node->output(0)->type.dtype))) {
      return absl::UnimplementedError(
          absl::StrCat("node '", node->name(),
                       "' (BitCast) looks at the bits of a 16-bit float, which is computed in float32"));
    }
    changed |= WidenAttributes(*node);
  }
  for (Value* value : graph.Values()) {
    if (!IsSmallFloat(value->type.dtype)) continue;
    changed = true;
    small_weights |= value->kind() == ValueKind::kParameter;
    if (value->kind() == ValueKind::kInput) {
      WidenInput(graph, value);
    } else if (value->producer()) {
      value->type = Widened(value->type);
    } else {
      RETURN_IF_ERROR(WidenContents(*value));
    }
  }
  if (small_weights) {
    module.notes.push_back("16-bit weights are computed with in float32; files keep the model's own type");
  }
  if (module.mode == Mode::kInfer) NarrowOutputs(graph, outputs);
  return changed;
}

}  // namespace pipec
