// Memory by itself, where devices may hold several stages: the least bytes that each must have, whatever the time.
#pragma once

#include <cstdint>

#include "compiler/partition/blocks.h"
#include "compiler/partition/problem.h"

namespace pipec {

// The least that is found; that some cut fits `enough` is known. Of all orders of the blocks that keep their
// parents in front of them: the least there is, unless there are more than `ideals` ideals or a size takes too long
// to decide.
int64_t LeastDeviceMemory(const PartitionProblem& problem, const Blocks& blocks, int64_t enough, int ideals);

}  // namespace pipec
