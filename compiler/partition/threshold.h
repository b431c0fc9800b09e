// The search for the smallest bottleneck with a solver that answers whether a limit can be met; and, for few
// microbatches, for the smallest sum of all stages and microbatches - 1 times the slowest.
#pragma once

#include <limits>
#include <optional>
#include <vector>

namespace pipec {

// What is least among the cuts whose stages all keep a limit.
enum class Least { kSumOfSquares, kSum };

// Stages in a cut by block.
class ThresholdSolver {
 public:
  enum class Answer { kYes, kNo, kGaveUp };

  virtual ~ThresholdSolver() = default;
  // Whether some cut has no stage slower than `limit`.
  virtual Answer Probe(double limit) = 0;
  // After Probe said yes: the slowest stage of the cut that it found, at most its limit; after Best, of that one.
  virtual double bottleneck() const = 0;
  // After Probe said no: below this limit the answer is the same. At least its limit.
  virtual double next_limit() const = 0;
  // After Probe(limit) said yes: of the cuts within the limit the one of which the sum is least, and that sum; some
  // cut if the solver gives up.
  virtual std::vector<int> Best(double limit, Least least, double& sum) = 0;
};

struct ThresholdCut {
  std::optional<std::vector<int>> stage_of;  // by block; none: no better one was found
  bool proven = true;                        // nothing better exists; false if the solver gave up
};

// The smallest bottleneck, and among equal ones the smallest sum of squared stages; none if that is not below
// `known`. No cut is faster than `low`.
ThresholdCut LeastBottleneck(ThresholdSolver& solver, double low, double known);

// The smallest sum + (microbatches - 1) * bottleneck, if that is below `known`.
ThresholdCut LeastStepTime(ThresholdSolver& solver, double low, int microbatches, double known);

}  // namespace pipec
