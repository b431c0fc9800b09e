// Fewer places to cut, for problems of which the exact solver would look at too many segments.
#pragma once

#include <optional>
#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/fixed_order.h"
#include "compiler/partition/problem.h"

namespace pipec {

// The exact solver where that is affordable. Otherwise it chooses among evenly spread places with cheap
// messages first, and then among all places near the cut it found: never worse than the first, and as cheap.
class CutSolver {
 public:
  // `blocks` are those of `problem`; both must outlive the solver.
  CutSolver(const PartitionProblem& problem, const Blocks& blocks);

  // First blocks of the stages of the best cut; nullopt only if no cut keeps the caps.
  std::optional<std::vector<int>> Solve(const StageRules& rules) const;

 private:
  // Segments that one probe looks at, roughly.
  double Steps() const;
  std::vector<char> SpreadPlaces(int count) const;
  // The best cut at the places where `keep` is set.
  std::optional<std::vector<int>> SolveAt(const std::vector<char>& keep, const StageRules& rules) const;
  std::optional<std::vector<int>> SolveAll(const Blocks& blocks, const StageRules& rules) const;

  const PartitionProblem& problem_;
  const Blocks& blocks_;
  std::vector<char> spread_;  // by block: a stage may begin there; empty: everywhere
};

}  // namespace pipec
