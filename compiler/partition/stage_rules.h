// What distinguishes the stages: the device's speed, what is kept more than once, the memory allowed.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/memory_use.h"
#include "compiler/partition/problem.h"

namespace pipec {

constexpr int64_t kNoCap = std::numeric_limits<int64_t>::max();

// By stage.
struct StageRules {
  std::vector<double> speed;
  std::vector<Copies> copies;
  std::vector<int64_t> cap;  // bytes, what can be made again left out where that is needed

  int stages() const { return static_cast<int>(speed.size()); }
};

// Each stage by itself may fill its device.
StageRules RulesOf(const PartitionProblem& problem);

int RankOf(const PartitionProblem& problem, int stage);
// Entries of rank_of_stage, at least 1 + the largest.
int Ranks(const PartitionProblem& problem);
bool OneStageADevice(const PartitionProblem& problem);
// Of a device.
double SpeedOf(const PartitionProblem& problem, int rank);
int64_t MemoryOf(const PartitionProblem& problem, int rank);

// Seconds that no cut into these stages, each on a device of its own, goes below by compute alone.
double LeastLoad(const Blocks& blocks, const StageRules& rules);

}  // namespace pipec
