#include "passes/rank_loads.h"

#include <algorithm>
#include <set>

#include "compiler/cost/node_cost.h"
#include "compiler/partition/fixed_order_cut.h"
#include "compiler/partition/stage_rules.h"

namespace pipec {

RankLoads::RankLoads(const StageItems& items, const Cluster& cluster) : items_(items), cluster_(cluster) {
  if (!items.problem.memory_limits.empty()) blocks_ = MakeBlocks(items.problem);
}

std::vector<double> RankLoads::Of(const std::vector<int>& stage_of) const {
  const PartitionProblem& problem = items_.problem;
  std::vector<double> seconds(cluster_.devices.size(), 0);
  for (size_t i = 0; i < stage_of.size(); ++i) {
    const int rank = problem.rank_of_stage[stage_of[i]];
    seconds[rank] += items_.SecondsOn(items_.kind_of_rank[rank], i);
  }
  std::set<int> others;
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const int from = stage_of[items_.sender[t]], from_rank = problem.rank_of_stage[from];
    others = {stage_of[problem.tensors[t].producer]};
    for (const int consumer : problem.tensors[t].consumers) others.insert(stage_of[consumer]);
    others.erase(from);
    double slowest = 0;
    for (const int other : others) {
      const int rank = problem.rank_of_stage[other];
      const double message = MessageSeconds(items_.tensor_bytes[t], cluster_.LinkBetween(from_rank, rank));
      seconds[rank] += message;
      slowest = std::max(slowest, message);
    }
    seconds[from_rank] += slowest;
  }
  if (blocks_) AddRemade(stage_of, seconds);
  return seconds;
}

double RankLoads::Slowest(const std::vector<int>& stage_of) const {
  const std::vector<double> seconds = Of(stage_of);
  return *std::max_element(seconds.begin(), seconds.end());
}

void RankLoads::AddRemade(const std::vector<int>& stage_of, std::vector<double>& seconds) const {
  const PartitionProblem& problem = items_.problem;
  std::vector<int> by_block;
  for (const Block& block : blocks_->blocks) by_block.push_back(stage_of[block.first_item]);
  const std::vector<MemoryUse> kept = UseOfDevices(problem, *blocks_, by_block);
  for (size_t rank = 0; rank < kept.size(); ++rank) {
    if (MemoryOf(problem, rank) == kNoCap) continue;
    seconds[rank] +=
        kept[rank].RemakeSeconds(static_cast<double>(MemoryOf(problem, rank))) / SpeedOf(problem, rank);
  }
}

}  // namespace pipec
