#include "compiler/onnx/schema/type_group.h"

#include <algorithm>
#include <string>

#include "onnx/defs/data_type_utils.h"
#include "onnx/defs/schema.h"

namespace pipec {
namespace {

bool Admits(const onnx::OpSchema::FormalParameter& formal, DType dtype) {
  onnx::TypeProto type;
  type.mutable_tensor_type()->set_elem_type(static_cast<int>(dtype));
  return formal.GetTypes().contains(onnx::Utils::DataTypeUtils::ToType(type));
}

}  // namespace

TypeGroup TypeGroupOf(const Node& node, DType other) {
  const int inputs = static_cast<int>(node.inputs().size()),
            outputs = static_cast<int>(node.outputs().size());
  TypeGroup group;
  const auto is_float = [other](const Value* value) {
    return value && (value->type.dtype == DType::kFloat32 || value->type.dtype == other);
  };
  const onnx::OpSchema* schema =
      node.domain() == kPipecDomain ? nullptr : onnx::OpSchemaRegistry::Schema(node.op(), node.domain());
  if (node.domain() != kPipecDomain && !schema) return group;
  std::string variable;
  const auto is_member = [&](bool input, int k) {
    // The exponents of attention keep their type: in 16 bits every weight would lose accuracy.
    if (!schema) return !node.Is("FusedAttention", kPipecDomain) || k != (input ? 3 : 1);
    const auto& formals = input ? schema->inputs() : schema->outputs();
    const auto& formal = formals[std::min<size_t>(k, formals.size() - 1)];
    // Operands of any types, each its own: there is nothing to be of one type with.
    if (formal.GetOption() == onnx::OpSchema::Variadic && !formal.GetIsHomogeneous()) return false;
    if (variable.empty() && Admits(formal, other)) variable = formal.GetTypeStr();
    return formal.GetTypeStr() == variable;
  };
  for (int k = 0; k < inputs; ++k) {
    if (!is_float(node.input(k))) continue;
    if (is_member(true, k)) {
      group.inputs.push_back(k);
    } else if (group.inputs.empty()) {
      return {};
    }
  }
  if (group.inputs.empty()) return {};
  for (int k = 0; k < outputs; ++k) {
    if (is_float(node.output(k)) && is_member(false, k)) group.outputs.push_back(k);
  }
  return group;
}

}  // namespace pipec
