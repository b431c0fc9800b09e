#include "compiler/onnx/import_nodes.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/attribute_proto.h"
#include "compiler/onnx/emit_node.h"
#include "compiler/onnx/fold_shapes.h"
#include "compiler/onnx/function_body.h"
#include "compiler/onnx/infer.h"
#include "compiler/onnx/normalize.h"
#include "compiler/onnx/order_nodes.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Functions that call each other, or twice each, must not make a small file an endless graph.
constexpr int kMaxDepth = 64;
constexpr int kMaxNodes = 200'000;

std::string FunctionKey(const std::string& domain, const std::string& name, const std::string& overload) {
  return absl::StrCat(CanonicalDomain(domain), "::", name, overload.empty() ? "" : ":", overload);
}

absl::Status Annotate(const onnx::NodeProto& proto, const Opsets& opsets, const absl::Status& status) {
  if (status.ok()) return status;
  auto it = opsets.find(CanonicalDomain(proto.domain()));
  return absl::Status(
      status.code(),
      absl::StrCat(Describe(proto), it == opsets.end() ? "" : absl::StrCat(", opset ", it->second), ": ",
                   status.message()));
}

absl::Status CheckAgainstSchema(const onnx::NodeProto& proto, const std::string& domain, const Opsets& opsets,
                                bool trusted) {
  const std::string shown = domain.empty() ? "ai.onnx" : domain;
  auto opset = opsets.find(domain);
  if (opset == opsets.end()) {
    return absl::InvalidArgumentError(absl::StrCat("domain '", shown, "' is not among the opset imports"));
  }
  if (domain == kPipecDomain) return absl::OkStatus();
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(proto.op_type(), opset->second, domain);
  if (!schema) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown op ", proto.op_type(), " in domain '", shown, "', opset ", opset->second));
  }
  // A form deprecated as soon as it was published (GroupNormalization 18) is still in models.
  if (schema->deprecated() && domain.empty() && HasNewerForm(proto.op_type(), opset->second)) trusted = true;
  if (trusted) return absl::OkStatus();
  try {
    schema->Verify(proto);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return absl::OkStatus();
}

// The attributes of a node, those by reference taken from the function call it is in.
absl::Status ReadAttributes(const onnx::NodeProto& proto,
                            const absl::flat_hash_map<std::string, Attribute>* bindings,
                            Attributes& attributes) {
  for (const auto& attribute : proto.attribute()) {
    if (!attribute.ref_attr_name().empty()) {
      if (!bindings)
        return absl::InvalidArgumentError(
            absl::StrCat("attribute ", attribute.name(), " refers to a function's, outside of one"));
      if (auto it = bindings->find(attribute.ref_attr_name()); it != bindings->end()) {
        attributes.Set(attribute.name(), it->second);
      }
      continue;
    }
    auto value = FromProto(attribute);
    if (!value.ok()) {
      return absl::Status(value.status().code(),
                          absl::StrCat("attribute ", attribute.name(), ": ", value.status().message()));
    }
    attributes.Set(attribute.name(), *std::move(value));
  }
  return absl::OkStatus();
}

}  // namespace

NodeImporter::NodeImporter(Graph& graph, const ImportOptions& options, const Functions& functions)
    : graph_(graph), options_(options) {
  for (const auto& function : functions) {
    functions_[FunctionKey(function.domain(), function.name(), function.overload())] = &function;
  }
}

absl::Status NodeImporter::Import(const Nodes& nodes, const Opsets& opsets, Scope& scope) {
  return ImportNodes(nodes, {opsets, scope, "", nullptr});
}

absl::Status NodeImporter::ImportNodes(const Nodes& nodes, const Frame& frame) {
  ASSIGN_OR_RETURN(const std::vector<int> order,
                   OrderNodes(nodes, [&](const std::string& name) { return frame.scope.contains(name); }));
  for (int n : order) RETURN_IF_ERROR(Annotate(nodes[n], frame.opsets, ImportNode(nodes[n], frame)));
  return absl::OkStatus();
}

absl::Status NodeImporter::ImportNode(const onnx::NodeProto& proto, const Frame& frame) {
  if (graph_.num_nodes() > kMaxNodes) {
    return absl::InvalidArgumentError(absl::StrCat("the graph has more than ", kMaxNodes, " nodes"));
  }
  ASSIGN_OR_RETURN(const std::vector<Value*> results, Convert(proto, frame));
  for (int k = 0; k < proto.output_size(); ++k) {
    if (proto.output(k).empty()) continue;
    if (k >= results.size() || !results[k]) {
      return absl::InvalidArgumentError(
          absl::StrCat("has no result ", k, ", which the graph calls '", proto.output(k), "'"));
    }
    frame.scope[proto.output(k)] = results[k];
    // A result that is one of the operands keeps the name it has.
    const bool passed_on =
        std::any_of(proto.input().begin(), proto.input().end(), [&](const std::string& name) {
          auto it = frame.scope.find(name);
          return it != frame.scope.end() && it->second == results[k];
        });
    if (!passed_on) graph_.Rename(results[k], frame.prefix + proto.output(k));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Value*>> NodeImporter::Convert(const onnx::NodeProto& proto, const Frame& frame) {
  NodeSpec spec{.op = proto.op_type(), .domain = CanonicalDomain(proto.domain())};
  spec.name = frame.prefix + (proto.name().empty() ? proto.op_type() : proto.name());
  for (const std::string& name : proto.input())
    spec.inputs.push_back(name.empty() ? nullptr : frame.scope.at(name));
  while (!spec.inputs.empty() && !spec.inputs.back()) spec.inputs.pop_back();

  if (auto it = functions_.find(FunctionKey(proto.domain(), proto.op_type(), proto.overload()));
      it != functions_.end()) {
    RETURN_IF_ERROR(ReadAttributes(proto, frame.attributes, spec.attributes));
    AttributeBindings bindings(spec.attributes.begin(), spec.attributes.end());
    return Call(*it->second, spec, std::move(bindings), false);
  }
  for (const auto& attribute : proto.attribute()) {
    if (attribute.has_g() || attribute.graphs_size() > 0) {
      return absl::UnimplementedError("ops with subgraphs (control flow) are not supported");
    }
  }
  RETURN_IF_ERROR(CheckAgainstSchema(proto, spec.domain, frame.opsets, frame.from_schema));
  RETURN_IF_ERROR(ReadAttributes(proto, frame.attributes, spec.attributes));

  int outputs = proto.output_size();
  while (outputs > 0 && proto.output(outputs - 1).empty()) --outputs;
  if (spec.op == "Constant" && spec.domain.empty()) {
    ASSIGN_OR_RETURN(Value * constant, AddConstantNode(graph_, spec));
    return std::vector<Value*>{constant};
  }
  if (spec.domain.empty()) {
    PendingNode pending{
        .graph = graph_, .spec = std::move(spec), .opset = frame.opsets.at(""), .outputs = outputs};
    RETURN_IF_ERROR(NormalizeOpset(pending));
    if (pending.results.empty()) RETURN_IF_ERROR(NormalizeLoss(pending));
    if (!pending.results.empty()) return std::move(pending.results);
    spec = std::move(pending.spec);
  }
  std::vector<bool> wanted;
  for (int k = 0; k < outputs; ++k) wanted.push_back(!proto.output(k).empty());
  return Emit(std::move(spec), outputs, wanted);
}

absl::StatusOr<std::vector<Value*>> NodeImporter::Emit(NodeSpec spec, int outputs,
                                                       const std::vector<bool>& wanted) {
  onnx::FunctionProto storage;
  const onnx::FunctionProto* body = nullptr;
  if (spec.domain != kPipecDomain && !HasKernel("cpu", spec.op, spec.domain)) {
    ASSIGN_OR_RETURN(body, FindFunctionBody(spec, outputs, storage));
  }
  if (body) {
    AttributeBindings bindings(spec.attributes.begin(), spec.attributes.end());
    RETURN_IF_ERROR(AddSchemaDefaults(spec.op, spec.domain, bindings));
    return Call(*body, spec, std::move(bindings), true);
  }
  ASSIGN_OR_RETURN(spec.outputs, InferTypes(spec, outputs));
  for (int k = 0; k < outputs; ++k) {
    if (!wanted[k]) spec.outputs[k] = {};
  }
  Node* node = graph_.AddNode(std::move(spec));
  std::vector<Value*> results(node->outputs().begin(), node->outputs().end());
  RETURN_IF_ERROR(FoldSmall(graph_, node, options_.evaluate, results));
  return results;
}

absl::StatusOr<std::vector<Value*>> NodeImporter::Call(const onnx::FunctionProto& function,
                                                       const NodeSpec& spec, AttributeBindings attributes,
                                                       bool from_schema) {
  const std::string key = FunctionKey(function.domain(), function.name(), function.overload());
  if (std::find(active_.begin(), active_.end(), key) != active_.end() || active_.size() >= kMaxDepth) {
    return absl::InvalidArgumentError(absl::StrCat("function ", key,
                                                   " calls itself, or calls are nested more than ", kMaxDepth,
                                                   " deep: ", absl::StrJoin(active_, " > ")));
  }
  if (spec.inputs.size() > function.input_size()) {
    return absl::InvalidArgumentError(absl::StrCat("function ", key, " has ", function.input_size(),
                                                   " inputs, is given ", spec.inputs.size()));
  }
  for (const auto& attribute : function.attribute_proto()) {
    if (attributes.contains(attribute.name())) continue;
    ASSIGN_OR_RETURN(attributes[attribute.name()], FromProto(attribute));
  }
  Scope scope;
  for (int i = 0; i < function.input_size(); ++i) {
    scope[function.input(i)] = i < spec.inputs.size() ? spec.inputs[i] : nullptr;
  }
  ASSIGN_OR_RETURN(Opsets opsets, ReadOpsets(function.opset_import()));
  // Bodies that a schema builds do not always say which opset they are written in: the newest.
  opsets.try_emplace("", NewestOpset(""));
  active_.push_back(key);
  RETURN_IF_ERROR(
      ImportNodes(function.node(), {opsets, scope, absl::StrCat(spec.name, "/"), &attributes, from_schema}));
  active_.pop_back();
  std::vector<Value*> results;
  for (const std::string& name : function.output()) {
    // Optional results may be left out; whoever asks for one that is not there is told so.
    auto it = scope.find(name);
    results.push_back(it == scope.end() ? nullptr : it->second);
  }
  return results;
}

}  // namespace pipec
