#include "compiler/cost/node_cost.h"

#include <algorithm>

#include "compiler/ops/op_info.h"

namespace pipec {

double NodeSeconds(const Node& node, const DeviceProfile& device) {
  if (AliasOf(node) == Alias::kView || node.Is("Message", kPipecDomain)) return 0;
  const NodeCost cost = CostOf(node);
  return device.launch_seconds +
         std::max(cost.flops / device.flops_per_second, cost.bytes / device.bytes_per_second);
}

double MessageSeconds(int64_t bytes, const Link& link) {
  return bytes > 0 ? link.latency_seconds + bytes / link.bytes_per_second : 0;
}

}  // namespace pipec
