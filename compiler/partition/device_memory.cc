#include "compiler/partition/device_memory.h"

#include <limits>
#include <optional>

#include "compiler/partition/device_solver.h"
#include "compiler/partition/ideals.h"

namespace pipec {
namespace {

constexpr int64_t kSteps = 50'000'000;  // of DeviceSolver, all sizes together

Blocks WithoutTime(Blocks blocks) {
  for (Block& block : blocks.blocks) {
    block.seconds = block.produced_seconds = 0;
    block.remake = {};
  }
  for (BlockTensor& tensor : blocks.tensors) tensor.seconds = 0;
  blocks.total_seconds = 0;
  blocks.can_remake = false;
  return blocks;
}

}  // namespace

int64_t LeastDeviceMemory(const PartitionProblem& problem, const Blocks& blocks, int64_t enough, int ideals) {
  const Blocks timeless = WithoutTime(blocks);
  const std::optional<Ideals> sets = FindIdeals(timeless, ideals);
  if (!sets) return enough;
  PartitionProblem limited = problem;
  limited.memory_limits.clear();
  int64_t too_little = 0, steps = 0;
  while (enough - too_little > 1) {
    limited.memory_limit = too_little + (enough - too_little) / 2;
    DeviceSolver solver(limited, timeless, *sets, AllPlaces(*sets), {.steps = kSteps - steps});
    const DeviceCut cut = solver.Solve(0, std::numeric_limits<double>::infinity());
    if (!cut.stage_of && !cut.proven) break;
    steps += solver.steps();
    (cut.stage_of ? enough : too_little) = limited.memory_limit;
  }
  return enough;
}

}  // namespace pipec
