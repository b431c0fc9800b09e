#include "compiler/onnx/schema/function_body.h"

#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/read/attribute_proto.h"
#include "compiler/onnx/schema/own_bodies.h"
#include "compiler/onnx/schema/schema_context.h"
#include "compiler/onnx/schema/training_bodies.h"
#include "onnx/defs/parser.h"
#include "onnx/defs/schema.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// The schema's builders ask which operands and results are there, by name.
onnx::NodeProto ToProto(const NodeSpec& spec, int outputs) {
  onnx::NodeProto proto;
  proto.set_op_type(spec.op);
  proto.set_domain(spec.domain);
  for (const Value* input : spec.inputs) proto.add_input(input ? input->name() : "");
  for (int k = 0; k < outputs; ++k) proto.add_output(absl::StrCat("result", k));
  for (const auto& [name, value] : spec.attributes) *proto.add_attribute() = ToProto(name, value);
  return proto;
}

}  // namespace

int NewestOpset(const std::string& domain) {
  const auto& known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  auto it = known.find(domain);
  return it == known.end() ? 1 : it->second.second;
}

absl::StatusOr<const onnx::FunctionProto*> FindFunctionBody(const NodeSpec& spec, int outputs,
                                                            onnx::FunctionProto& storage) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(spec.op, spec.domain);
  if (!schema) return nullptr;
  const int opset = NewestOpset(spec.domain);
  try {
    std::optional<std::string> text = TrainingBody(spec);
    if (!text) text = OwnBody(spec);
    if (text) {
      const auto status = onnx::OnnxParser::Parse(storage, text->c_str());
      if (status.IsOK()) return &storage;
      return absl::InternalError(absl::StrCat("the body of ", spec.op, ": ", status.ErrorMessage()));
    }
    if (schema->HasFunction()) return schema->GetFunction(opset);
    if (!schema->HasContextDependentFunction()) return nullptr;
    std::vector<onnx::TypeProto> types;
    for (const Value* input : spec.inputs) {
      types.push_back(input ? ToProto(input->type) : onnx::TypeProto());
    }
    // The context keeps pointers into the node's attributes.
    const onnx::NodeProto node = ToProto(spec, outputs);
    const onnx::FunctionBodyBuildContextImpl context(node, types);
    return schema->BuildContextDependentFunction(context, storage, opset) ? &storage : nullptr;
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("the function body of ", spec.op, " cannot be built: ", error.what()));
  }
}

absl::Status AddSchemaDefaults(const std::string& op, const std::string& domain,
                               absl::flat_hash_map<std::string, Attribute>& attributes) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(op, domain);
  for (const auto& [name, attribute] : schema->attributes()) {
    if (attribute.default_value.type() == onnx::AttributeProto::UNDEFINED || attributes.contains(name))
      continue;
    ASSIGN_OR_RETURN(attributes[name], FromProto(attribute.default_value));
  }
  return absl::OkStatus();
}

}  // namespace pipec
