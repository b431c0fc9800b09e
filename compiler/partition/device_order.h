// The best cut of the blocks in their order, where devices hold several stages, whose seconds and bytes add up.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/device_solver.h"
#include "compiler/partition/problem.h"

namespace pipec {

// Of a cut by block into stages that follow each other.
std::vector<int> FirstBlocks(const std::vector<int>& stage_of);

class DeviceOrder {
 public:
  // `problem` must outlive this; of its items, `blocks` are in some valid order.
  DeviceOrder(const PartitionProblem& problem, Blocks blocks);

  // Stages by block, as DeviceSolver's; the boundaries may lie anywhere.
  DeviceCut Exact(double known, int64_t steps);
  // A cut of less StepTime than this one, of first blocks of stages, if one is found: all boundaries move at once,
  // each not far, for as long as that helps. The cut itself need not fit.
  std::optional<std::vector<int>> Improve(std::vector<int> cut, double known);

  // Those in order: each is the only parent of the next.
  const Blocks& blocks() const { return blocks_; }
  // Of DeviceSolver, all together.
  int64_t steps() const { return steps_; }

 private:
  DeviceCut Solve(std::vector<int> places, double known, const DeviceSearch& search);

  const PartitionProblem& problem_;
  const Blocks blocks_;
  const Ideals ideals_;  // one for each place
  int64_t steps_ = 0;
};

}  // namespace pipec
