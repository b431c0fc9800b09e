#include "compiler/cost/stage_links.h"

#include "compiler/cost/node_cost.h"

namespace pipec {

std::vector<StageLink> StageLinks(const Module& module, const Cluster& cluster, bool backward) {
  std::vector<StageLink> links;
  for (const Message& message : module.messages) {
    if (message.kind != MessageKind::kActivation && (message.kind != MessageKind::kGradient || !backward))
      continue;
    const int from = module.stages[message.from_stage].rank, to = module.stages[message.to_stage].rank;
    int64_t bytes = 0;
    for (const Value* value : message.node->inputs()) bytes += value->type.bytes();
    links.push_back({message.from_stage, message.to_stage, MessageSeconds(bytes, cluster.LinkBetween(from, to))});
  }
  return links;
}

}  // namespace pipec
