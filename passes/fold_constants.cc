// Computes, on the CPU device, what does not depend on inputs or parameters.
//   before: mask = Trilu(ones)                  after: constant mask
// Parameters do not fold, in neither mode: they stay references into the weights' files. Results above 16 MB
// fold only if they are no larger than their operands, so that a plan does not fill with expanded constants;
// and all together stay within limits of growth and of work, so that a small model cannot keep the compiler
// busy. What does not fold remains a node. Level model; before everything that needs axes, shapes or masks as
// constants.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/schema/infer.h"
#include "compiler/ops/op_info.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int64_t kMaxBytes = 16 << 20;
constexpr int64_t kMaxGrowth = 64 << 20;  // bytes of all results, above those of their operands
constexpr double kMaxWork = 1e9;          // FLOP, and bytes read and written

bool HasContents(const Value& value) { return value.data.bytes || value.data.file; }

// What may still be spent.
struct Budget {
  int64_t growth = kMaxGrowth;
  double work = kMaxWork;
};

bool MayFold(const Node& node, Budget& budget) {
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
  const int64_t growth = std::max<int64_t>(result_bytes - operand_bytes, 0);
  const NodeCost cost = CostOf(node);
  const double work = cost.flops + static_cast<double>(operand_bytes + result_bytes);
  if ((growth > 0 && result_bytes > kMaxBytes) || growth > budget.growth || work > budget.work) return false;
  budget.growth -= growth;
  budget.work -= work;
  return true;
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
  Budget budget;
  absl::flat_hash_set<Value*> made;
  for (Node* node : graph.Nodes()) {
    if (!MayFold(*node, budget)) continue;
    ASSIGN_OR_RETURN(const auto operands, Operands(*node));
    std::vector<const std::string*> inputs;
    for (const auto& operand : operands) inputs.push_back(operand.get());
    absl::StatusOr<std::vector<std::string>> contents = Evaluate(*node, inputs);
    if (absl::IsUnimplemented(contents.status())) continue;
    if (!contents.ok()) {
      return absl::Status(contents.status().code(), absl::StrCat("node '", node->name(), "' (", node->op(),
                                                                 "): ", contents.status().message()));
    }
    const bool counts_samples =
        std::any_of(node->inputs().begin(), node->inputs().end(),
                    [](const Value* input) { return input && input->counts_samples; });
    std::vector<std::pair<Value*, std::string>> folded;
    for (int k = 0; k < node->outputs().size(); ++k) {
      Value* output = node->outputs()[k];
      if (!output) continue;
      Value* constant = graph.AddConstant(output->name(), output->type, std::move((*contents)[k]));
      constant->output_name = output->output_name;
      constant->counts_samples = counts_samples;
      folded.emplace_back(constant, output->name());
      made.insert(constant);
      graph.ReplaceAllUses(output, constant);
    }
    const std::vector<Value*> used(node->inputs().begin(), node->inputs().end());
    graph.Erase(node);
    for (const auto& [constant, name] : folded) graph.Rename(constant, name);
    // Steps on the way to a result are not kept until the end.
    for (Value* value : used) {
      if (!made.contains(value) || !value->uses().empty()) continue;
      if (std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end()) continue;
      made.erase(value);
      graph.Erase(value);
    }
    changed = true;
  }
  return changed;
}

}  // namespace pipec
