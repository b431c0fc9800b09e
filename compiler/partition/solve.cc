#include "compiler/partition/solve.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/partition/blocks.h"
#include "compiler/partition/check_problem.h"
#include "compiler/partition/fixed_order_cut.h"
#include "compiler/partition/lower_bound.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::StatusOr<Blocks> BlocksOf(const PartitionProblem& problem) {
  RETURN_IF_ERROR(CheckProblem(problem));
  Blocks blocks = MakeBlocks(problem);
  if (problem.stages > blocks.size()) {
    return absl::OutOfRangeError(
        absl::StrCat("cannot cut into ", problem.stages, " stages, at most ", blocks.size()));
  }
  return blocks;
}

absl::Status TooLittleMemory(const PartitionProblem& problem, int64_t least) {
  const std::string limit = problem.memory_limits.empty()
                                ? absl::StrCat(problem.memory_limit, " bytes a device")
                                : std::string("the memory of its devices");
  return absl::ResourceExhaustedError(absl::StrCat("no cut into ", problem.stages, " stages fits ", limit,
                                                   "; the least that would do is ", least, " bytes"));
}

// `stage_of`: by block.
PartitionSolution MakeSolution(const PartitionProblem& problem, const std::vector<int>& stage_of,
                               double bound) {
  PartitionSolution solution;
  solution.stage_of = ByItem(problem, stage_of);
  const std::vector<double> loads = DeviceLoads(problem, solution.stage_of);
  solution.bottleneck = *std::max_element(loads.begin(), loads.end());
  solution.lower_bound = std::min(bound, solution.bottleneck);
  return solution;
}

}  // namespace

absl::StatusOr<PartitionSolution> SolveFixedOrder(const PartitionProblem& problem) {
  ASSIGN_OR_RETURN(const Blocks blocks, BlocksOf(problem));
  const FixedOrderCut cut = CutFixedOrder(problem, blocks);
  if (!cut.stage_of) return TooLittleMemory(problem, cut.least_memory);
  return MakeSolution(problem, *cut.stage_of, PartitionLowerBound(problem, blocks));
}

absl::StatusOr<PartitionSolution> SolvePartition(const PartitionProblem& problem) {
  return SolveFixedOrder(problem);
}

}  // namespace pipec
