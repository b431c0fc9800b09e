#include "compiler/onnx/gradient_node.h"
#include "compiler/onnx/import_nodes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/fold_shapes.h"
#include "compiler/onnx/normalize/normalize.h"
#include "compiler/onnx/order_nodes.h"
#include "compiler/onnx/read/attribute_proto.h"
#include "compiler/onnx/read/count_nodes.h"
#include "compiler/onnx/schema/function_body.h"
#include "compiler/onnx/schema/infer.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status TooLarge(int64_t max_copies) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the graph has more than ", kMaxNodes, " nodes, or more than ", max_copies,
                   " of them come from unrolled loops and expanded functions"));
}

// Whether `refusal` is that of an operand, passed on.
bool IsOfAnOperand(const absl::Status& refusal, const onnx::NodeProto& proto, const Scope& scope) {
  return std::any_of(proto.input().begin(), proto.input().end(), [&](const std::string& name) {
    const Meaning* meaning = name.empty() ? nullptr : scope.Find(name);
    const auto* status = meaning ? std::get_if<absl::Status>(meaning) : nullptr;
    return status && *status == refusal;
  });
}

std::vector<Meaning> Operands(const onnx::NodeProto& proto, const Scope& scope) {
  std::vector<Meaning> operands;
  operands.reserve(proto.input_size());
  for (const std::string& name : proto.input())
    operands.push_back(name.empty() ? Absent() : *scope.Find(name));
  while (!operands.empty() && std::holds_alternative<Absent>(operands.back())) operands.pop_back();
  return operands;
}

int WantedOutputs(const onnx::NodeProto& proto) {
  int outputs = proto.output_size();
  while (outputs > 0 && proto.output(outputs - 1).empty()) --outputs;
  return outputs;
}

Meaning MeaningOf(Value* value) { return value ? Meaning(value) : Meaning(Absent()); }

// Exporters write an empty tensor where they mean an absent operand.
void DropEmptyOperands(NodeSpec& spec) {
  if (spec.op != "Resize" || !spec.domain.empty()) return;
  for (size_t i = 1; i < spec.inputs.size(); ++i) {
    if (spec.inputs[i] && spec.inputs[i]->type.elements() == 0) spec.inputs[i] = nullptr;
  }
}

}  // namespace

// What ops that leave no node of their own may do at their place.
class NodeImporter::FrameImporter : public InPlaceImporter {
 public:
  FrameImporter(NodeImporter& importer, const Frame& frame) : importer_(importer), frame_(frame) {}

  Graph& graph() override { return importer_.graph_; }
  bool infers() const override { return importer_.options_.infers; }
  absl::Status Count(Value* value, int axis, Value* count) override {
    if (const Counted* counted = importer_.counted_.Find(value)) {
      return absl::UnimplementedError(absl::StrCat("only the run knows how many entries '", value->name(),
                                                   "' has along axis ", axis, ", and along axis ",
                                                   counted->axis, " either, which is not supported"));
    }
    importer_.counted_.Set(value, {axis, count});
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<Value*>> Emit(NodeSpec spec, int outputs) override {
    return importer_.Emit(std::move(spec), outputs, std::vector<bool>(outputs, true));
  }
  absl::StatusOr<Results> ImportBody(const onnx::GraphProto& body, const std::string& prefix,
                                     Results operands) override {
    return importer_.ImportBody(body, prefix, std::move(operands), frame_);
  }

 private:
  NodeImporter& importer_;
  const Frame& frame_;
};

absl::Status NodeImporter::AddFunctions(const Functions& functions) {
  for (const auto& function : functions) {
    const std::string key = FunctionKey(function.domain(), function.name(), function.overload());
    if (functions_.try_emplace(key, &function).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("the model has two functions ", key));
  }
  return absl::OkStatus();
}

absl::Status NodeImporter::Import(const Nodes& nodes, const Opsets& opsets, Scope& scope) {
  return ImportNodes(nodes, {opsets, scope, "", nullptr});
}

absl::Status NodeImporter::ImportNodes(const Nodes& nodes, const Frame& frame) {
  ASSIGN_OR_RETURN(const std::vector<int> order, OrderNodes(nodes, frame.scope));
  for (int n : order) {
    RETURN_IF_ERROR(Annotate(nodes[n], frame.prefix, frame.opsets, ImportNode(nodes[n], frame)));
  }
  return absl::OkStatus();
}

absl::Status NodeImporter::ImportNode(const onnx::NodeProto& proto, const Frame& frame) {
  if (graph_.num_nodes() > kMaxNodes) return TooLarge(options_.max_copies);
  if (!frame.prefix.empty() && ++copies_ > options_.max_copies) return TooLarge(options_.max_copies);
  const absl::StatusOr<Results> results = Convert(proto, frame);
  if (absl::IsUnimplemented(results.status())) {
    const bool passed_on = IsOfAnOperand(results.status(), proto, frame.scope);
    const absl::Status refusal =
        passed_on ? results.status() : Annotate(proto, frame.prefix, frame.opsets, results.status());
    for (const std::string& output : proto.output()) {
      if (!output.empty()) frame.scope.Set(output, refusal);
    }
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(results.status());
  for (int k = 0; k < proto.output_size(); ++k) {
    if (proto.output(k).empty()) continue;
    if (k >= results->size() || std::holds_alternative<Absent>((*results)[k])) {
      return absl::InvalidArgumentError(
          absl::StrCat("has no result ", k, ", which the graph calls '", proto.output(k), "'"));
    }
    NameResult(proto.output(k), (*results)[k], frame);
  }
  return absl::OkStatus();
}

void NodeImporter::NameResult(const std::string& name, const Meaning& meaning, const Frame& frame) {
  // What is passed on keeps the name it has: an operand, a captured value, an initializer.
  if (const auto* value = std::get_if<Value*>(&meaning)) {
    const bool nameable = (*value)->kind() == ValueKind::kResult || (*value)->kind() == ValueKind::kConstant;
    if (nameable && !frame.scope.Names(*value)) graph_.Rename(*value, frame.prefix + name);
  }
  frame.scope.Set(name, meaning);
}

absl::StatusOr<NodeImporter::Results> NodeImporter::Convert(const onnx::NodeProto& proto,
                                                            const Frame& frame) {
  if (!functions_.empty()) {
    auto it = functions_.find(FunctionKey(proto.domain(), proto.op_type(), proto.overload()));
    if (it != functions_.end()) {
      Attributes attributes;
      RETURN_IF_ERROR(ReadAttributes(proto, frame.attributes, false, attributes));
      return Call(*it->second, NodeName(proto, frame), Operands(proto, frame.scope),
                  AttributeBindings(attributes.begin(), attributes.end()), &frame.opsets);
    }
  }
  RETURN_IF_ERROR(CheckAgainstSchema(proto, frame.opsets, frame.from_schema));
  const std::string domain = CanonicalDomain(proto.domain());
  if (InPlaceRule rule = FindInPlaceRule(proto.op_type(), domain)) return ConvertInPlace(proto, frame, rule);
  // The one op of tensors that takes sequences and optionals as well.
  if (domain.empty() && proto.op_type() == "Identity" && proto.input_size() == 1) {
    const Meaning* meaning = frame.scope.Find(proto.input(0));
    if (meaning && !std::holds_alternative<Value*>(*meaning)) return Results{*meaning};
  }
  ASSIGN_OR_RETURN(const std::vector<Value*> values, ConvertTensors(proto, frame));
  Results results;
  for (Value* value : values) results.push_back(MeaningOf(value));
  return results;
}

absl::StatusOr<NodeImporter::Results> NodeImporter::ConvertInPlace(const onnx::NodeProto& proto,
                                                                   const Frame& frame, InPlaceRule rule) {
  const auto opset = frame.opsets.find("");
  InPlaceNode node{.name = NodeName(proto, frame),
                   .opset = opset == frame.opsets.end() ? 0 : opset->second,
                   .outputs = WantedOutputs(proto),
                   .operands = Operands(proto, frame.scope),
                   .proto = proto};
  RETURN_IF_ERROR(ReadAttributes(proto, frame.attributes, true, node.attributes));
  // These take an operand apart into as many parts as its type says.
  if (proto.op_type() == "Scan" || proto.op_type() == "SplitToSequence") {
    NodeSpec apart{.op = proto.op_type()};
    for (const Meaning& operand : node.operands) {
      if (const auto* value = std::get_if<Value*>(&operand)) apart.inputs.push_back(*value);
    }
    if (counted_.First(apart.inputs)) return counted_.Refusal(apart);
  }
  FrameImporter importer(*this, frame);
  return rule(node, importer);
}

absl::StatusOr<std::vector<Value*>> NodeImporter::ConvertTensors(const onnx::NodeProto& proto,
                                                                 const Frame& frame) {
  NodeSpec spec{
      .op = proto.op_type(), .domain = CanonicalDomain(proto.domain()), .name = NodeName(proto, frame)};
  for (const std::string& name : proto.input()) {
    ASSIGN_OR_RETURN(Value * operand, name.empty() ? nullptr : TensorOrAbsent(*frame.scope.Find(name)));
    spec.inputs.push_back(operand);
  }
  DropEmptyOperands(spec);
  while (!spec.inputs.empty() && !spec.inputs.back()) spec.inputs.pop_back();
  RETURN_IF_ERROR(ReadAttributes(proto, frame.attributes, false, spec.attributes));

  const int outputs = WantedOutputs(proto);
  if (spec.op == "Constant" && spec.domain.empty()) {
    ASSIGN_OR_RETURN(Value * constant, AddConstantNode(graph_, spec));
    return std::vector<Value*>{constant};
  }
  if (spec.domain.empty()) {
    PendingNode pending{
        .graph = graph_, .spec = std::move(spec), .opset = frame.opsets.at(""), .outputs = outputs};
    const bool counted = counted_.First(pending.spec.inputs) != nullptr;
    const int nodes = graph_.num_nodes();
    RETURN_IF_ERROR(NormalizeOpset(pending));
    if (pending.results.empty()) RETURN_IF_ERROR(NormalizeLoss(pending));
    // What the rules add is not looked at one by one.
    if (counted && (!pending.results.empty() || graph_.num_nodes() > nodes)) {
      return absl::UnimplementedError(
          absl::StrCat("the form of ", proto.op_type(),
                       " of this opset is not supported on operands whose size only the run knows"));
    }
    if (!pending.results.empty()) return std::move(pending.results);
    spec = std::move(pending.spec);
  }
  RETURN_IF_ERROR(ResolveGradient(spec, frame.scope));
  std::vector<bool> wanted;
  for (int k = 0; k < outputs; ++k) wanted.push_back(!proto.output(k).empty());
  return Emit(std::move(spec), outputs, wanted);
}

absl::StatusOr<std::vector<Value*>> NodeImporter::Emit(NodeSpec spec, int outputs,
                                                       const std::vector<bool>& wanted) {
  if (const SizedByData* sized = FindSizedByData(spec)) {
    return EmitSizedByData(std::move(spec), *sized, outputs, wanted);
  }
  const bool counted = counted_.First(spec.inputs) != nullptr;
  onnx::FunctionProto storage;
  const onnx::FunctionProto* body = nullptr;
  if (spec.domain != kPipecDomain && !HasKernel("cpu", spec.op, spec.domain)) {
    ASSIGN_OR_RETURN(body, FindFunctionBody(spec, outputs, storage));
  }
  if (body) {
    // Its nodes are looked at one by one; but which they are may have been decided by shapes.
    if (counted && !IsBroadcast(spec.op, spec.domain)) return counted_.Refusal(spec);
    AttributeBindings bindings(spec.attributes.begin(), spec.attributes.end());
    RETURN_IF_ERROR(AddSchemaDefaults(spec.op, spec.domain, bindings));
    Results operands;
    for (Value* input : spec.inputs) operands.push_back(MeaningOf(input));
    ASSIGN_OR_RETURN(const Results made,
                     Call(*body, spec.name, std::move(operands), std::move(bindings), nullptr));
    std::vector<Value*> results(made.size(), nullptr);
    for (int k = 0; k < std::min<int>(outputs, static_cast<int>(made.size())); ++k) {
      if (!wanted[k]) continue;
      ASSIGN_OR_RETURN(results[k], TensorOrAbsent(made[k]));
    }
    return results;
  }
  for (int k = 0; k < spec.inputs.size() && counted; ++k) {
    const Counted* index = CountedAxes::IsIndex(spec, k) ? counted_.Find(spec.inputs[k]) : nullptr;
    if (!index || index->zeros) continue;
    ASSIGN_OR_RETURN(spec.inputs[k], ZeroBeyondCount(spec.inputs[k]));
  }
  ASSIGN_OR_RETURN(spec.outputs, batch_.InferTypes(graph_, spec, outputs));
  std::vector<std::optional<Counted>> counts(outputs);
  if (counted) {
    ASSIGN_OR_RETURN(counts, counted_.OfResults(spec));
  }
  for (int k = 0; k < outputs; ++k) {
    if (!wanted[k]) spec.outputs[k] = {};
  }
  const std::string name = spec.name;
  Node* node = graph_.AddNode(std::move(spec));
  batch_.Place(*node, name);
  std::vector<Value*> results(node->outputs().begin(), node->outputs().end());
  for (int k = 0; k < outputs; ++k) {
    if (counts[k] && results[k]) counted_.Set(results[k], *counts[k]);
  }
  RETURN_IF_ERROR(FoldSmall(graph_, node, options_.evaluate, results));
  return results;
}

absl::StatusOr<NodeImporter::Results> NodeImporter::Call(const onnx::FunctionProto& function,
                                                         const std::string& name, Results operands,
                                                         AttributeBindings attributes,
                                                         const Opsets* callers) {
  const std::string key = FunctionKey(function.domain(), function.name(), function.overload());
  if (std::find(active_.begin(), active_.end(), key) != active_.end() || depth_ >= kMaxCallDepth) {
    return absl::InvalidArgumentError(absl::StrCat("function ", key,
                                                   " calls itself, or calls are nested more than ",
                                                   kMaxCallDepth, " deep: ", absl::StrJoin(active_, " > ")));
  }
  if (operands.size() > function.input_size()) {
    return absl::InvalidArgumentError(absl::StrCat("function ", key, " is given ", operands.size(),
                                                   " operands, has inputs for ", function.input_size()));
  }
  for (const auto& attribute : function.attribute_proto()) {
    if (attributes.contains(attribute.name())) continue;
    ASSIGN_OR_RETURN(attributes[attribute.name()], FromProto(attribute));
  }
  Scope scope;
  for (int i = 0; i < function.input_size(); ++i) {
    const bool given = i < operands.size();
    const auto* sequence = given ? std::get_if<Sequence>(&operands[i]) : nullptr;
    if (sequence) scope.KeepNames(sequence->elements);
    scope.Set(function.input(i), given ? std::move(operands[i]) : Absent());
  }
  ASSIGN_OR_RETURN(Opsets opsets, ReadOpsets(function.opset_import()));
  // A body should say which opsets it is written in. Where one does not: the caller's, or of a schema's own
  // body the newest.
  if (callers) opsets.insert(callers->begin(), callers->end());
  if (!callers) opsets.try_emplace("", NewestOpset(""));
  active_.push_back(key);
  ++depth_;
  const absl::Cleanup leave = [&] {
    active_.pop_back();
    --depth_;
  };
  RETURN_IF_ERROR(ImportNodes(function.node(),
                              {opsets, scope, absl::StrCat(name, "/"), &attributes, callers == nullptr}));
  Results results;
  for (const std::string& output : function.output()) {
    // Optional results may be left out; whoever asks for one that is not there is told so.
    const Meaning* meaning = scope.Find(output);
    results.push_back(meaning ? *meaning : Absent());
  }
  return results;
}

absl::StatusOr<NodeImporter::Results> NodeImporter::ImportBody(const onnx::GraphProto& body,
                                                               const std::string& prefix, Results operands,
                                                               const Frame& frame) {
  if (++copies_ > options_.max_copies) return TooLarge(options_.max_copies);
  if (depth_ >= kMaxCallDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("subgraphs are nested more than ", kMaxCallDepth, " deep"));
  }
  if (body.input_size() != operands.size()) {
    return absl::InvalidArgumentError(absl::StrCat("its subgraph has inputs for ", body.input_size(),
                                                   ", is given ", operands.size()));
  }
  Scope scope(&frame.scope);
  RETURN_IF_ERROR(initializers_.AddOnce(body, scope));
  for (int i = 0; i < body.input_size(); ++i) scope.Set(body.input(i).name(), std::move(operands[i]));
  ++depth_;
  const absl::Cleanup leave = [&] { --depth_; };
  RETURN_IF_ERROR(
      ImportNodes(body.node(), {frame.opsets, scope, prefix, frame.attributes, frame.from_schema}));
  Results results;
  for (const auto& output : body.output()) {
    const Meaning* meaning = scope.Find(output.name());
    if (!meaning) {
      return absl::InvalidArgumentError(
          absl::StrCat("result '", output.name(), "' of its subgraph is defined by nothing"));
    }
    results.push_back(*meaning);
  }
  return results;
}

}  // namespace pipec
