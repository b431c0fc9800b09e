#include "compiler/onnx/export_stages.h"

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/read/attribute_proto.h"

namespace pipec {
namespace {

using Stretch = std::vector<const Node*>;

const char* Part(Kind kind) {
  return kind == Kind::kF ? "forward" : kind == Kind::kU ? "update" : "backward";
}

bool IsMessage(const Node& node) { return node.Is("Message", kPipecDomain); }

// Consecutive nodes of one stage and part; a message stands alone. Execution order makes any such division
// sound.
std::vector<Stretch> Stretches(const Graph& graph) {
  std::vector<Stretch> stretches;
  for (const Node* node = graph.first_node(); node; node = node->next()) {
    const Node* last = stretches.empty() ? nullptr : stretches.back().back();
    const bool together = last && !IsMessage(*last) && !IsMessage(*node) && last->stage == node->stage &&
                          absl::string_view(Part(last->kind)) == Part(node->kind);
    if (!together) stretches.emplace_back();
    stretches.back().push_back(node);
  }
  return stretches;
}

// The function of a stretch and the node that calls it: operands are what others made, results what others
// use.
void AddFunction(const Stretch& stretch, const std::string& name,
                 const absl::flat_hash_set<const Value*>& outputs,
                 const absl::flat_hash_map<std::string, int>& domains, onnx::ModelProto& model) {
  onnx::FunctionProto& function = *model.add_functions();
  onnx::NodeProto& call = *model.mutable_graph()->add_node();
  function.set_domain(kStageDomain);
  function.set_name(name);
  call.set_domain(kStageDomain);
  call.set_op_type(name);
  call.set_name(name);
  for (const auto& [domain, version] : domains) {
    auto& opset = *function.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  }
  const absl::flat_hash_set<const Node*> inside(stretch.begin(), stretch.end());
  absl::flat_hash_set<const Value*> operands;
  for (const Node* node : stretch) {
    *function.add_node() = ToProto(*node);
    for (const Value* input : node->inputs()) {
      const bool from_outside = input && !(input->producer() && inside.contains(input->producer()));
      if (!from_outside || !operands.insert(input).second) continue;
      function.add_input(input->name());
      call.add_input(input->name());
    }
    for (const Value* output : node->outputs()) {
      if (!output) continue;
      bool used_outside = outputs.contains(output);
      for (const Use& use : output->uses()) used_outside |= !inside.contains(use.node);
      if (!used_outside) continue;
      function.add_output(output->name());
      call.add_output(output->name());
    }
  }
}

}  // namespace

onnx::NodeProto ToProto(const Node& node) {
  onnx::NodeProto proto;
  proto.set_name(node.name());
  proto.set_op_type(node.op());
  proto.set_domain(node.domain());
  for (const Value* input : node.inputs()) proto.add_input(input ? input->name() : "");
  for (const Value* output : node.outputs()) proto.add_output(output ? output->name() : "");
  for (const auto& [name, value] : node.attributes) *proto.add_attribute() = ToProto(name, value);
  return proto;
}

void AddStageFunctions(const Module& module, const absl::flat_hash_map<std::string, int>& domains,
                       onnx::ModelProto& model) {
  const absl::flat_hash_set<const Value*> outputs(module.graph.outputs.begin(), module.graph.outputs.end());
  absl::flat_hash_map<std::string, int> counts;
  for (const Stretch& stretch : Stretches(module.graph)) {
    const Node& first = *stretch.front();
    if (IsMessage(first)) {
      *model.mutable_graph()->add_node() = ToProto(first);
      continue;
    }
    std::string name = absl::StrCat("stage_", first.stage, "_", Part(first.kind));
    if (const int count = ++counts[name]; count > 1) absl::StrAppend(&name, "_", count);
    AddFunction(stretch, name, outputs, domains, model);
  }
}

}  // namespace pipec
