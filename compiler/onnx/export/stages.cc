#include "compiler/onnx/export/stages.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/export/values.h"

namespace pipec {
namespace {

using Stretch = std::vector<const Node*>;

const char* Part(Kind kind) {
  return kind == Kind::kF ? "forward" : kind == Kind::kU ? "update" : "backward";
}

bool IsMessage(const Node& node) { return node.Is("Message", kPipecDomain); }

// Consecutive nodes of one stage and part; a message stands alone. Execution order makes any such division
// sound.
std::vector<Stretch> Stretches(const std::vector<const Node*>& nodes) {
  std::vector<Stretch> stretches;
  for (const Node* node : nodes) {
    const Node* last = stretches.empty() ? nullptr : stretches.back().back();
    const bool together = last && !IsMessage(*last) && !IsMessage(*node) && last->stage == node->stage &&
                          absl::string_view(Part(last->kind)) == Part(node->kind);
    if (!together) stretches.emplace_back();
    stretches.back().push_back(node);
  }
  return stretches;
}

// The function of a stretch and the node that calls it: operands are what others made, and the run-time
// scalars; results what others use.
void AddFunction(const Stretch& stretch, const std::string& name,
                 const absl::flat_hash_set<const Value*>& needed, HelperFunctions& functions,
                 onnx::ModelProto& model) {
  onnx::FunctionProto& function = *model.add_functions();
  onnx::NodeProto& call = *model.mutable_graph()->add_node();
  function.set_domain(kStageDomain);
  function.set_name(name);
  call.set_domain(kStageDomain);
  call.set_op_type(name);
  call.set_name(name);
  const absl::flat_hash_set<const Node*> inside(stretch.begin(), stretch.end());
  absl::flat_hash_set<std::string> operands;
  const auto add_operand = [&](const std::string& operand) {
    if (!operands.insert(operand).second) return;
    function.add_input(operand);
    call.add_input(operand);
  };
  for (const Node* node : stretch) {
    *function.add_node() = NodeToProto(*node, functions);
    for (const Value* input : node->inputs()) {
      if (input && !(input->producer() && inside.contains(input->producer()))) add_operand(input->name());
    }
    for (const std::string& scalar : RunTimeScalarsOf(*node)) add_operand(scalar);
    for (const Value* output : node->outputs()) {
      if (!output) continue;
      bool used_outside = needed.contains(output);
      for (const Use& use : output->uses()) used_outside |= !inside.contains(use.node);
      if (!used_outside) continue;
      function.add_output(output->name());
      call.add_output(output->name());
    }
  }
}

}  // namespace

void AddStageFunctions(const std::vector<const Node*>& nodes, const absl::flat_hash_set<const Value*>& needed,
                       HelperFunctions& functions, onnx::ModelProto& model) {
  absl::flat_hash_map<std::string, int> counts;
  for (const Stretch& stretch : Stretches(nodes)) {
    const Node& first = *stretch.front();
    if (IsMessage(first)) {
      *model.mutable_graph()->add_node() = NodeToProto(first, functions);
      continue;
    }
    std::string name = absl::StrCat("stage_", first.stage, "_", Part(first.kind));
    if (const int count = ++counts[name]; count > 1) absl::StrAppend(&name, "_", count);
    AddFunction(stretch, name, needed, functions, model);
  }
}

}  // namespace pipec
