#include "compiler/partition/stage_rules.h"

#include <algorithm>

namespace pipec {

int RankOf(const PartitionProblem& problem, int stage) {
  return problem.rank_of_stage.empty() ? stage : problem.rank_of_stage[stage];
}

int Ranks(const PartitionProblem& problem) {
  if (problem.rank_of_stage.empty()) return problem.stages;
  return 1 + *std::max_element(problem.rank_of_stage.begin(), problem.rank_of_stage.end());
}

bool OneStageADevice(const PartitionProblem& problem) {
  std::vector<int> ranks = problem.rank_of_stage;
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
}

double SpeedOf(const PartitionProblem& problem, int rank) {
  return problem.speed.empty() ? 1 : problem.speed[rank];
}

int64_t MemoryOf(const PartitionProblem& problem, int rank) {
  if (problem.memory_limits.empty()) return problem.memory_limit;
  return std::min(problem.memory_limit, problem.memory_limits[rank]);
}

StageRules RulesOf(const PartitionProblem& problem) {
  StageRules rules;
  for (int s = 0; s < problem.stages; ++s) {
    const int rank = RankOf(problem, s);
    rules.speed.push_back(SpeedOf(problem, rank));
    rules.copies.push_back({problem.in_flight.empty() ? 1 : problem.in_flight[s],
                            problem.versions.empty() ? 1 : problem.versions[s]});
    rules.cap.push_back(MemoryOf(problem, rank));
  }
  return rules;
}

double LeastLoad(const Blocks& blocks, const StageRules& rules) {
  double all = 0, fastest = 0, heaviest = 0;
  for (double speed : rules.speed) {
    all += speed;
    fastest = std::max(fastest, speed);
  }
  for (const Block& block : blocks.blocks) heaviest = std::max(heaviest, block.seconds);
  return std::max(blocks.total_seconds / all, heaviest / fastest);
}

}  // namespace pipec
