#include "compiler/cost/node_cost.h"

#include <algorithm>

#include "compiler/cost/measured_costs.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/cost_key.h"

namespace pipec {
namespace {

std::vector<TensorType> Types(absl::Span<Value* const> values) {
  std::vector<TensorType> types;
  for (const Value* value : values) types.push_back(value ? value->type : TensorType{});
  return types;
}

}  // namespace

bool TakesTime(const Node& node) {
  return AliasOf(node) != Alias::kView && !node.Is("Message", kPipecDomain) &&
         !node.attributes.Has("eval_only");
}

NodeTime TimeOf(const Node& node, const DeviceProfile& device) {
  if (!TakesTime(node)) return {};
  if (device.measured) {
    const auto& measured = device.measured->node_seconds;
    const auto it = measured.find(
        CostKey(node.domain(), node.op(), node.attributes, Types(node.inputs()), Types(node.outputs())));
    if (it != measured.end()) return {it->second, Origin::kMeasured};
  }
  const NodeCost cost = CostOf(node);
  return {device.launch_seconds +
          std::max(cost.flops / device.flops_per_second, cost.bytes / device.bytes_per_second)};
}

double ActionSeconds(const DeviceProfile& device) {
  return device.measured ? device.measured->action_seconds : 0;
}

double MessageSeconds(int64_t bytes, const Link& link) {
  return bytes > 0 ? link.latency_seconds + bytes / link.bytes_per_second : 0;
}

}  // namespace pipec
