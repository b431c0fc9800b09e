// The best cut of the blocks in their order, with devices that hold several stages.
#pragma once

#include <optional>
#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/memory_use.h"

namespace pipec {

struct FixedOrderCut {
  std::optional<std::vector<int>> stage_of;  // by block; none: no cut fits the memory
  int64_t least_memory = 0;                  // if none: bytes a device that would do, the least that is found
};

// As SolveFixedOrder in solve.h.
FixedOrderCut CutFixedOrder(const PartitionProblem& problem, const Blocks& blocks);

// What each device keeps.
std::vector<MemoryUse> UseOfDevices(const PartitionProblem& problem, const Blocks& blocks,
                                   const std::vector<int>& stage_of);

bool FitsDevices(const PartitionProblem& problem, const Blocks& blocks, const std::vector<int>& stage_of);

}  // namespace pipec
