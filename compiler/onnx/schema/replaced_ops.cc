#include "compiler/onnx/schema/replaced_ops.h"

#include <algorithm>
#include <exception>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "compiler/onnx/in_place/in_place.h"
#include "compiler/onnx/schema/function_body.h"
#include "compiler/onnx/schema/own_bodies.h"
#include "compiler/ops/op_info.h"
#include "onnx/defs/parser.h"
#include "onnx/defs/schema.h"

namespace pipec {
namespace {

using Names = std::set<std::string>;

// Deprecated ops and what normalisation makes of them (normalize/).
absl::string_view SuccessorOf(absl::string_view op) {
  if (op == "Scatter") return "ScatterElements";
  if (op == "Upsample") return "Resize";
  return "";
}

bool IsFloat(const onnx::OpSchema::FormalParameter& parameter) {
  const auto& types = parameter.GetTypes();
  return std::any_of(types.begin(), types.end(),
                     [](const std::string* type) { return absl::StrContains(*type, "(float"); });
}

// Operands go to results as they are: by their types.
Flow FlowThroughOperands(const onnx::OpSchema& schema) {
  const bool in = std::any_of(schema.inputs().begin(), schema.inputs().end(), IsFloat);
  const bool out = std::any_of(schema.outputs().begin(), schema.outputs().end(), IsFloat);
  // Subgraphs capture values too.
  const bool captures =
      std::any_of(schema.attributes().begin(), schema.attributes().end(),
                  [](const auto& entry) { return entry.second.type == onnx::AttributeProto::GRAPH; });
  return out && (in || captures) ? Flow::kPasses : Flow::kStops;
}

class Walk {
 public:
  explicit Walk(FlowOfOp of) : of_(of) {}

  // `moved`: the values that a change of the operands reaches; the nodes' results are added. False: not known.
  template <typename Nodes>
  bool Follow(const Nodes& nodes, Names& moved) {
    for (const onnx::NodeProto& node : nodes) {
      if (!FollowNode(node, moved)) return false;
    }
    return true;
  }

 private:
  bool FollowNode(const onnx::NodeProto& node, Names& moved) {
    bool reached = false;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (!attribute.has_g()) continue;
      Names inside = moved;
      for (const auto& input : attribute.g().input()) inside.insert(input.name());
      if (!Follow(attribute.g().node(), inside)) return false;
      for (const auto& output : attribute.g().output()) reached |= inside.contains(output.name());
    }
    if (!reached) {
      // CastLike's second operand gives its type only.
      const int operands = node.op_type() == "CastLike" ? 1 : node.input_size();
      for (int i = 0; i < operands; ++i) reached |= moved.contains(node.input(i));
      if (reached) {
        Flow flow = of_(node.op_type(), node.domain());
        if (flow == Flow::kUnknown && node.domain().empty())
          flow = FlowThroughReplacement(node.op_type(), of_);
        if (flow == Flow::kUnknown) return false;
        reached = flow == Flow::kPasses;
      }
    }
    if (reached) moved.insert(node.output().begin(), node.output().end());
    return true;
  }

  FlowOfOp of_;
};

Flow FlowThrough(const onnx::FunctionProto& body, const onnx::OpSchema& schema, FlowOfOp of) {
  Names moved;
  for (int i = 0; i < body.input_size(); ++i) {
    const int formal = std::min<int>(i, static_cast<int>(schema.inputs().size()) - 1);
    if (IsFloat(schema.inputs()[formal])) moved.insert(body.input(i));
  }
  if (!Walk(of).Follow(body.node(), moved)) return Flow::kUnknown;
  const bool reached = std::any_of(body.output().begin(), body.output().end(),
                                   [&](const std::string& output) { return moved.contains(output); });
  return reached ? Flow::kPasses : Flow::kStops;
}

// A tensor of `rank` axes of size 2 of a type that the operand takes, a float one if it does.
onnx::TypeProto Example(const onnx::OpSchema::FormalParameter& parameter, int rank) {
  onnx::TypeProto type;
  const auto takes = [&](absl::string_view name) {
    const auto& types = parameter.GetTypes();
    return std::any_of(types.begin(), types.end(), [&](const std::string* t) { return *t == name; });
  };
  auto& tensor = *type.mutable_tensor_type();
  tensor.set_elem_type(takes("tensor(float)")   ? onnx::TensorProto::FLOAT
                       : takes("tensor(int64)") ? onnx::TensorProto::INT64
                                                : onnx::TensorProto::BOOL);
  for (int i = 0; i < rank; ++i) tensor.mutable_shape()->add_dim()->set_dim_value(2);
  return type;
}

onnx::NodeProto ExampleNode(const onnx::OpSchema& schema, int operands) {
  onnx::NodeProto node;
  node.set_op_type(schema.Name());
  for (int i = 0; i < operands; ++i) node.add_input("x" + std::to_string(i));
  for (int k = 0; k < schema.min_output(); ++k) node.add_output("y" + std::to_string(k));
  for (const auto& [name, attribute] : schema.attributes()) {
    if (!attribute.required) continue;
    onnx::AttributeProto& value = *node.add_attribute();
    value.set_name(name);
    value.set_type(attribute.type);
    if (attribute.type == onnx::AttributeProto::INT) value.set_i(1);
    if (attribute.type == onnx::AttributeProto::FLOAT) value.set_f(1);
  }
  return node;
}

Flow FlowThroughBuiltBody(const onnx::OpSchema& schema, FlowOfOp of) {
  Flow flow = Flow::kUnknown;
  const int most = static_cast<int>(schema.inputs().size());
  for (int rank = 1; rank <= 4; ++rank) {
    for (int operands : std::set<int>{schema.min_input(), most}) {
      const onnx::NodeProto node = ExampleNode(schema, operands);
      std::vector<onnx::TypeProto> types;
      for (int i = 0; i < operands; ++i) types.push_back(Example(schema.inputs()[i], rank));
      onnx::FunctionProto body;
      try {
        const onnx::FunctionBodyBuildContextImpl context(node, types);
        if (!schema.BuildContextDependentFunction(context, body, NewestOpset(""))) continue;
      } catch (const std::exception&) {
        continue;
      }
      const Flow through = FlowThrough(body, schema, of);
      if (through == Flow::kUnknown) return through;
      if (flow != Flow::kPasses) flow = through;
    }
  }
  return flow;
}

}  // namespace

Flow FlowThroughReplacement(const std::string& op, FlowOfOp of) {
  if (const absl::string_view successor = SuccessorOf(op); !successor.empty()) return of(successor, "");
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(op);
  if (!schema || HasKernel("cpu", op, "")) return Flow::kUnknown;
  if (FindInPlaceRule(op)) return FlowThroughOperands(*schema);
  if (const std::optional<std::string> text = OwnBody(op)) {
    onnx::FunctionProto body;
    return onnx::OnnxParser::Parse(body, text->c_str()).IsOK() ? FlowThrough(body, *schema, of)
                                                               : Flow::kUnknown;
  }
  if (schema->HasFunction()) {
    const onnx::FunctionProto* body = schema->GetFunction(NewestOpset(""));
    return body ? FlowThrough(*body, *schema, of) : Flow::kUnknown;
  }
  return schema->HasContextDependentFunction() ? FlowThroughBuiltBody(*schema, of) : Flow::kUnknown;
}

}  // namespace pipec
