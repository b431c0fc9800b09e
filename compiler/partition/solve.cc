#include "compiler/partition/solve.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/partition/blocks.h"
#include "compiler/partition/cut_candidates.h"
#include "compiler/partition/fixed_order.h"
#include "compiler/partition/least_cap.h"
#include "compiler/partition/lower_bound.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status CheckProblem(const PartitionProblem& problem) {
  const int n = problem.items.size(), S = problem.stages;
  if (S < 1)
    return absl::InvalidArgumentError(absl::StrCat("cannot cut into ", S, " stages, wanted at least 1"));
  auto right_size = [S](const std::vector<int>& list) {
    return list.empty() || static_cast<int>(list.size()) == S;
  };
  if (!right_size(problem.in_flight) || !right_size(problem.rank_of_stage)) {
    return absl::InvalidArgumentError(absl::StrCat("partition into ", S, " stages: in_flight has ",
                                                   problem.in_flight.size(), " and rank_of_stage ",
                                                   problem.rank_of_stage.size(), " entries"));
  }
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const PartitionTensor& tensor = problem.tensors[t];
    int previous = tensor.producer;
    bool good = tensor.producer >= 0 && !tensor.consumers.empty();
    for (int consumer : tensor.consumers) {
      good &= consumer > previous && consumer < n;
      previous = consumer;
    }
    if (!good) {
      return absl::InvalidArgumentError(absl::StrCat("partition: consumers of tensor ", t, ", made by item ",
                                                     tensor.producer, " of ", n,
                                                     ", must ascend and come after it"));
    }
  }
  for (const PartitionShared& shared : problem.shared) {
    for (int item : shared.items) {
      if (item < 0 || item >= n) {
        return absl::InvalidArgumentError(
            absl::StrCat("partition: shared parameter of item ", item, " of ", n));
      }
    }
  }
  return absl::OkStatus();
}

std::vector<int> InFlight(const PartitionProblem& problem) {
  return problem.in_flight.empty() ? std::vector<int>(problem.stages, 1) : problem.in_flight;
}

int RankOf(const PartitionProblem& problem, int stage) {
  return problem.rank_of_stage.empty() ? stage : problem.rank_of_stage[stage];
}

// Bytes of the fullest device under a cut given by first blocks.
int64_t MostBytes(const PartitionProblem& problem, const Blocks& blocks, absl::Span<const int> cut) {
  const std::vector<int> in_flight = InFlight(problem);
  std::vector<int64_t> bytes(problem.stages, 0);
  for (int s = 0; s < problem.stages; ++s) {
    Segment segment(blocks, cut[s]);
    const int end = s + 1 < problem.stages ? cut[s + 1] : blocks.size();
    while (segment.end() < end) segment.Grow();
    bytes[RankOf(problem, s)] += segment.parameter_bytes() + in_flight[s] * segment.activation_bytes();
  }
  return *std::max_element(bytes.begin(), bytes.end());
}

bool OneStageADevice(const PartitionProblem& problem) {
  std::vector<int> ranks = problem.rank_of_stage;
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
}

absl::Status TooLittleMemory(const PartitionProblem& problem, int64_t least) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no cut into ", problem.stages, " stages fits ", problem.memory_limit,
                   " bytes a device; the least that would do is ", least, " bytes"));
}

// First blocks of the best cut that fits, as solve.h says.
absl::StatusOr<std::vector<int>> FindCut(const PartitionProblem& problem, const Blocks& blocks) {
  const std::vector<int> in_flight = InFlight(problem);
  CutSolver solver(problem, blocks, in_flight);
  if (problem.memory_limit == std::numeric_limits<int64_t>::max())
    return *solver.Solve(FixedOrderSolver::kNoCap);
  std::optional<std::vector<int>> cut;
  if (FitsStageCap(blocks, in_flight, problem.memory_limit)) cut = solver.Solve(problem.memory_limit);
  if (cut && MostBytes(problem, blocks, *cut) <= problem.memory_limit) return *cut;
  const int64_t least_cap = LeastStageCap(blocks, in_flight);
  if (OneStageADevice(problem)) return TooLittleMemory(problem, least_cap);

  int64_t least = std::numeric_limits<int64_t>::max();
  std::optional<std::vector<int>> best;
  double best_load = 0;
  for (double factor : {1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0}) {
    cut = solver.Solve(static_cast<int64_t>(least_cap * factor));
    const int64_t bytes = MostBytes(problem, blocks, *cut);
    least = std::min(least, bytes);
    if (bytes > problem.memory_limit) continue;
    std::vector<int> first_item;
    for (int block : *cut) first_item.push_back(blocks.blocks[block].first_item);
    const std::vector<double> loads = StageLoads(problem, first_item);
    const double load = *std::max_element(loads.begin(), loads.end());
    if (!best || load < best_load) {
      best = cut;
      best_load = load;
    }
  }
  if (!best) return TooLittleMemory(problem, least);
  return *best;
}

}  // namespace

absl::StatusOr<PartitionSolution> SolvePartition(const PartitionProblem& problem) {
  RETURN_IF_ERROR(CheckProblem(problem));
  const Blocks blocks = MakeBlocks(problem);
  if (problem.stages > blocks.size()) {
    return absl::OutOfRangeError(
        absl::StrCat("cannot cut into ", problem.stages, " stages, at most ", blocks.size()));
  }
  ASSIGN_OR_RETURN(const std::vector<int> cut, FindCut(problem, blocks));
  PartitionSolution solution;
  for (int block : cut) solution.first_item.push_back(blocks.blocks[block].first_item);
  const std::vector<double> loads = StageLoads(problem, solution.first_item);
  solution.bottleneck = *std::max_element(loads.begin(), loads.end());
  solution.lower_bound = std::min(PartitionLowerBound(blocks, problem.stages), solution.bottleneck);
  return solution;
}

}  // namespace pipec
