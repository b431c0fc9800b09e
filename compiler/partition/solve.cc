#include "compiler/partition/solve.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/partition/blocks.h"
#include "compiler/partition/check_problem.h"
#include "compiler/partition/device_memory.h"
#include "compiler/partition/device_solver.h"
#include "compiler/partition/fixed_order_cut.h"
#include "compiler/partition/ideal_solver.h"
#include "compiler/partition/ideals.h"
#include "compiler/partition/lower_bound.h"
#include "compiler/partition/order_search.h"
#include "compiler/partition/stage_rules.h"
#include "runtime/base/counted.h"
#include "runtime/base/least_memory.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// A little search first: the better what is known, the sooner the exact solver has proven that nothing is better.
constexpr int kFirstOrders = 20, kFirstRounds = 10;
constexpr int64_t kFirstTries = 50;  // by block

absl::StatusOr<Blocks> BlocksOf(const PartitionProblem& problem) {
  RETURN_IF_ERROR(CheckProblem(problem));
  Blocks blocks = MakeBlocks(problem);
  if (problem.stages > blocks.size()) {
    return absl::OutOfRangeError(absl::StrCat("cannot cut into ", Counted(problem.stages, "stage", "stages"),
                                              ", at most ", blocks.size()));
  }
  return blocks;
}

absl::Status TooLittleMemory(const PartitionProblem& problem, int64_t least) {
  const std::string limit = problem.memory_limits.empty()
                                ? absl::StrCat(problem.memory_limit, " bytes a device")
                                : std::string("the memory of its devices");
  return WithLeastMemory(
      absl::ResourceExhaustedError(absl::StrCat("no cut into ", Counted(problem.stages, "stage", "stages"),
                                                " fits ", limit, "; none needs less than ", least, " bytes")),
      least);
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

// The cut of the least StepTime, if that is below `known`.
ThresholdCut Exact(const PartitionProblem& problem, const Blocks& blocks, const Ideals& ideals, int64_t pairs,
                   double bound, double known) {
  if (!OneStageADevice(problem)) {
    DeviceCut cut = DeviceSolver(problem, blocks, ideals, AllPlaces(ideals), {.steps = pairs}).Solve(bound, known);
    return {std::move(cut.stage_of), cut.proven};
  }
  IdealSolver solver(blocks, ideals, RulesOf(problem), pairs);
  return problem.microbatches > 0 ? LeastStepTime(solver, bound, problem.microbatches, known)
                                  : LeastBottleneck(solver, bound, known);
}

}  // namespace

absl::StatusOr<PartitionSolution> SolveFixedOrder(const PartitionProblem& problem) {
  ASSIGN_OR_RETURN(const Blocks blocks, BlocksOf(problem));
  const FixedOrderCut cut = CutFixedOrder(problem, blocks);
  if (!cut.stage_of) return TooLittleMemory(problem, cut.least_memory);
  return MakeSolution(problem, *cut.stage_of, PartitionLowerBound(problem, blocks));
}

absl::StatusOr<PartitionSolution> SolvePartition(const PartitionProblem& problem,
                                                 const PartitionEffort& effort) {
  ASSIGN_OR_RETURN(const Blocks blocks, BlocksOf(problem));
  double bound = PartitionLowerBound(problem, blocks);
  OrderSearch search(problem, blocks, problem.microbatches > 0 ? 0 : bound);
  FixedOrderCut cut = CutFixedOrder(problem, blocks);
  if (cut.stage_of) search.Offer(std::move(*cut.stage_of));
  search.LimitWork(effort.search / 10);
  search.TryOrders(kFirstOrders);
  if (search.best()) search.MoveBlocks(kFirstRounds, kFirstTries * blocks.size());

  const std::optional<Ideals> ideals = search.at_bound() ? std::nullopt : FindIdeals(blocks, effort.ideals);
  bool proven = false;
  if (ideals) {
    ThresholdCut best = Exact(problem, blocks, *ideals, effort.pairs, bound, search.best_time());
    if (best.stage_of) search.Offer(std::move(*best.stage_of));
    proven = best.proven;
  }
  if (!search.best()) {
    return TooLittleMemory(problem, LeastDeviceMemory(problem, blocks, cut.least_memory, effort.ideals));
  }
  search.LimitWork(effort.search);
  if (!proven) search.Search();
  search.Smooth();
  PartitionSolution solution = MakeSolution(problem, *search.best(), bound);
  if (proven && problem.microbatches == 0) solution.lower_bound = solution.bottleneck;
  return solution;
}

}  // namespace pipec
