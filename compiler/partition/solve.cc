#include "compiler/partition/solve.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/partition/blocks.h"
#include "compiler/partition/check_problem.h"
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
constexpr double kUnlimited = std::numeric_limits<double>::infinity();
// Of ideals, to ask whether a memory limit would do.
constexpr int64_t kMemoryPairs = 10'000'000;

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

// Bytes a device, where `enough` are.
int64_t LeastMemory(const PartitionProblem& problem, const Blocks& blocks, const Ideals& ideals,
                    int64_t enough) {
  StageRules rules = RulesOf(problem);
  int64_t too_little = 0;
  while (enough - too_little > 1) {
    const int64_t middle = too_little + (enough - too_little) / 2;
    std::fill(rules.cap.begin(), rules.cap.end(), middle);
    const auto answer = IdealSolver(blocks, ideals, rules, kMemoryPairs).Probe(kUnlimited);
    if (answer == ThresholdSolver::Answer::kGaveUp) break;
    (answer == ThresholdSolver::Answer::kYes ? enough : too_little) = middle;
  }
  return enough;
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

  const bool exact = OneStageADevice(problem) && !search.at_bound();
  const std::optional<Ideals> ideals = exact ? FindIdeals(blocks, effort.ideals) : std::nullopt;
  bool proven = false;
  if (ideals) {
    IdealSolver solver(blocks, *ideals, RulesOf(problem), effort.pairs);
    ThresholdCut best = problem.microbatches > 0
                            ? LeastStepTime(solver, bound, problem.microbatches, search.best_time())
                            : LeastBottleneck(solver, bound, search.best_time());
    if (best.stage_of) search.Offer(std::move(*best.stage_of));
    proven = best.proven;
  }
  if (!search.best()) {
    const bool known = proven && problem.microbatches == 0;
    return TooLittleMemory(problem, ideals && known ? LeastMemory(problem, blocks, *ideals, cut.least_memory)
                                                    : cut.least_memory);
  }
  search.LimitWork(effort.search);
  if (!proven) search.Search();
  search.Smooth();
  PartitionSolution solution = MakeSolution(problem, *search.best(), bound);
  if (proven && problem.microbatches == 0) solution.lower_bound = solution.bottleneck;
  return solution;
}

}  // namespace pipec
