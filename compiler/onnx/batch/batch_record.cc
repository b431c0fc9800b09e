#include "compiler/onnx/batch/batch_record.h"

#include <utility>

namespace pipec {
namespace {

ValueRecord Of(const Value* value) {
  if (!value) return {};
  ValueRecord record{.shape = value->type.shape, .batch_axis = value->batch_axis};
  if (value->kind() == ValueKind::kConstant) record.bytes = value->data.bytes;
  return record;
}

}  // namespace

void BatchRecord::Add(const Node& node, absl::string_view name) {
  NodeRecord record{.op = node.op()};
  for (const Value* input : node.inputs()) record.inputs.push_back(Of(input));
  for (const Value* output : node.outputs()) record.outputs.push_back(Of(output));
  nodes_[name].push_back(std::move(record));
}

const NodeRecord* BatchRecord::Find(const NodeSpec& spec, int nth) const {
  auto it = nodes_.find(spec.name);
  if (it == nodes_.end() || nth >= static_cast<int>(it->second.size())) return nullptr;
  const NodeRecord& record = it->second[nth];
  return record.op == spec.op && record.inputs.size() == spec.inputs.size() ? &record : nullptr;
}

}  // namespace pipec
