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
  const NodeCost cost = CostOf(node);
  if (device.measured) {
    const auto& measured = device.measured->node_seconds;
    const std::string key =
        CostKey(node.domain(), node.op(), node.attributes, Types(node.inputs()), Types(node.outputs()));
    if (const auto it = measured.find(key); it != measured.end()) return {it->second, Origin::kMeasured};
    if (const auto fitted = device.measured->fitted.Seconds(key, cost)) return {*fitted, Origin::kFitted};
  }
  return {device.launch_seconds +
          std::max(cost.flops / device.flops_per_second, cost.bytes / device.bytes_per_second)};
}

double ActionSeconds(const DeviceProfile& device) {
  return device.measured ? device.measured->action_seconds : 0;
}

double MessageSeconds(double bytes, const Link& link) {
  if (bytes <= 0) return 0;
  return link.latency_seconds + std::min(bytes, link.knee_bytes) / link.bytes_per_second +
         std::max(bytes - link.knee_bytes, 0.0) / link.bytes_per_second_beyond;
}

double SumSeconds(double bytes, int replicas, const Link& link) {
  return 2 * (replicas - 1) * MessageSeconds(bytes / replicas, link);
}

}  // namespace pipec
