// Computes, on the CPU device, what does not depend on inputs or parameters.
//   before: mask = Trilu(ones)                  after: constant mask
// Parameters do not fold, in neither mode: they stay references into the weights' files. Results above 16 MB
// fold only if they are no larger than their operands, so that a plan does not fill with expanded constants.
// Level model; before everything that needs axes, shapes or masks as constants.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/infer.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int64_t kMaxBytes = 16 << 20;

bool HasContents(const Value& value) { return value.data.bytes || value.data.file; }

bool MayFold(const Node& node) {
  if (node.outputs().empty() || !IsDeterministic(node.op(), node.domain())) return false;
  int64_t operand_bytes = 0, result_bytes = 0;
  for (const Value* input : node.inputs()) {
    if (!input) continue;
    if (input->kind() != ValueKind::kConstant || !HasContents(*input)) return false;
    operand_bytes += input->type.bytes();
  }
  for (const Value* output : node.outputs()) {
    if (output) result_bytes += output->type.bytes();
  }
  return result_bytes <= std::max(kMaxBytes, operand_bytes);
}

// The operands' contents: shared if in memory, read if in a file.
absl::StatusOr<std::vector<std::shared_ptr<const std::string>>> Operands(const Node& node) {
  std::vector<std::shared_ptr<const std::string>> operands;
  for (const Value* input : node.inputs()) {
    if (!input || input->data.bytes) {
      operands.push_back(input ? input->data.bytes : nullptr);
      continue;
    }
    ASSIGN_OR_RETURN(std::string bytes, ReadData(*input));
    operands.push_back(std::make_shared<const std::string>(std::move(bytes)));
  }
  return operands;
}

}  // namespace

absl::StatusOr<bool> FoldConstants(Module& module, const PassContext&) {
  Graph& graph = module.graph;
  bool changed = false;
  for (Node* node : graph.Nodes()) {
    if (!MayFold(*node)) continue;
    ASSIGN_OR_RETURN(const auto operands, Operands(*node));
    std::vector<const std::string*> inputs;
    for (const auto& operand : operands) inputs.push_back(operand.get());
    absl::StatusOr<std::vector<std::string>> contents = Evaluate(*node, inputs);
    if (absl::IsUnimplemented(contents.status())) continue;
    if (!contents.ok()) {
      return absl::Status(contents.status().code(), absl::StrCat("node '", node->name(), "' (", node->op(),
                                                                 "): ", contents.status().message()));
    }
    std::vector<std::pair<Value*, std::string>> folded;
    for (int k = 0; k < node->outputs().size(); ++k) {
      Value* output = node->outputs()[k];
      if (!output) continue;
      Value* constant = graph.AddConstant(output->name(), output->type, std::move((*contents)[k]));
      folded.emplace_back(constant, output->name());
      graph.ReplaceAllUses(output, constant);
    }
    graph.Erase(node);
    for (const auto& [constant, name] : folded) graph.Rename(constant, name);
    changed = true;
  }
  return changed;
}

}  // namespace pipec
