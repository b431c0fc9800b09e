// Outputs of an inferring model that nothing computes: an input, a weight, a constant, or a view of one.
//   before: output x (an input)        after: c = Transpose<perm = same order>(x); output c, called 'x'
// So that every output is made by an instruction, which lives in a stage and writes bytes of its own. An
// output that the model names twice is delivered once. Level model; after folding and splitting, which decide
// what is a constant; before the batch axis, which the copies then get as any other node does.
#include <numeric>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ops/op_info.h"
#include "passes/passes.h"

namespace pipec {
namespace {

bool IsComputed(const Value* value) {
  while (value->producer() && AliasOf(*value->producer()) == Alias::kView)
    value = value->producer()->input(0);
  return value->kind() == ValueKind::kResult;
}

}  // namespace

absl::StatusOr<bool> CopyOutputs(Module& module, const PassContext&) {
  if (module.mode != Mode::kInfer) return false;
  bool changed = false;
  absl::flat_hash_set<const Value*> seen;
  std::vector<Value*> outputs;
  for (Value* value : module.graph.outputs) {
    if (!seen.insert(value).second) {
      changed = true;
      continue;
    }
    if (!IsComputed(value)) {
      std::vector<int64_t> same(value->type.shape.size());
      std::iota(same.begin(), same.end(), 0);
      NodeSpec spec{.op = "Transpose", .inputs = {value}, .outputs = {value->type}};
      spec.attributes.Set("perm", std::move(same));
      Value* copy = module.graph.AddNode(std::move(spec))->output(0);
      copy->output_name = value->output_name.empty() ? value->name() : value->output_name;
      value = copy;
      changed = true;
    }
    outputs.push_back(value);
  }
  module.graph.outputs = std::move(outputs);
  return changed;
}

}  // namespace pipec
