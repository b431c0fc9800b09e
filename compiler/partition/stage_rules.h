// What distinguishes the stages: the device's speed, the activations kept, the memory allowed.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/problem.h"

namespace pipec {

constexpr int64_t kNoCap = std::numeric_limits<int64_t>::max();

// By stage.
struct StageRules {
  std::vector<double> speed;
  std::vector<int> in_flight;
  std::vector<int64_t> cap;  // bytes

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

// In floating point: bytes times microbatches may exceed 64 bits.
inline double BytesOf(int64_t parameter_bytes, int64_t activation_bytes, int in_flight) {
  return static_cast<double>(parameter_bytes) + static_cast<double>(in_flight) * activation_bytes;
}

}  // namespace pipec
