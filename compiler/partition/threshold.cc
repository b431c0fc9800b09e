#include "compiler/partition/threshold.h"

#include <algorithm>
#include <limits>

#include "compiler/partition/stage_fit.h"

namespace pipec {
namespace {

using Answer = ThresholdSolver::Answer;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

ThresholdCut LeastBottleneck(ThresholdSolver& solver, double low, double known) {
  // No limit below `low` can be met; a cut of bottleneck `high` is known.
  double high = known;
  bool proven = true;
  for (double factor = 1.02; high == kInfinity; factor = 1 + 2 * (factor - 1)) {
    const double limit = factor > 64 || low == 0 ? kInfinity : low * factor;
    const Answer answer = solver.Probe(limit);
    if (answer == Answer::kGaveUp) return {std::nullopt, false};
    if (answer == Answer::kYes) {
      high = solver.bottleneck();
    } else if (limit == kInfinity) {
      return {std::nullopt, true};
    } else {
      low = std::max(limit, solver.next_limit() == kInfinity ? limit : solver.next_limit());
    }
  }
  if (known < kInfinity) {
    if (low * kCostSlack >= high) return {std::nullopt, true};
    // Most often what is known is the best: asked first.
    const double limit = high / kCostSlack / kCostSlack;
    const Answer answer = solver.Probe(limit);
    if (answer == Answer::kYes) high = std::min(limit, solver.bottleneck());
    if (answer == Answer::kNo) return {std::nullopt, true};
    if (answer == Answer::kGaveUp) return {std::nullopt, false};
  }
  while (low * kCostSlack < high) {
    const double limit = low + (high - low) / 2;
    const Answer answer = solver.Probe(limit);
    if (answer == Answer::kYes) {
      high = std::min(limit, solver.bottleneck());  // by rounding, what was found may lie above the limit
    } else if (answer == Answer::kNo) {
      low = std::max(limit, solver.next_limit());
    } else {
      proven = false;
      break;
    }
  }
  // A limit above that of the last answers may be refused for want of time: then what is known stays.
  if (solver.Probe(high) != Answer::kYes) return {std::nullopt, proven};
  double squares = 0;
  return {solver.Best(high, Least::kSumOfSquares, squares), proven};
}

// The least sum only grows when the limit falls. Between two limits no cut is better than the sum at the upper
// and the lower limit itself.
ThresholdCut LeastStepTime(ThresholdSolver& solver, double low, int microbatches, double known) {
  ThresholdCut best;
  struct Range {
    double low = 0, high = 0;  // bottlenecks in between
    double least_sum = 0;      // no cut in the range has less
  };
  std::vector<Range> ranges = {{low, kInfinity, 0}};
  while (!ranges.empty()) {
    Range range = ranges.back();
    ranges.pop_back();
    const auto hopeless = [&] {
      return (range.least_sum + (microbatches - 1) * range.low) * kCostSlack >= known;
    };
    if (hopeless() || range.low > range.high) continue;
    const Answer answer = solver.Probe(range.high);
    if (answer == Answer::kGaveUp) return {best.stage_of, false};
    if (answer == Answer::kNo) continue;
    std::vector<int> stage_of = solver.Best(range.high, Least::kSum, range.least_sum);
    const double bottleneck = solver.bottleneck();
    const double total = range.least_sum + (microbatches - 1) * bottleneck;
    if (total * kCostSlack < known) {
      known = total;
      best.stage_of = std::move(stage_of);
    }
    // Cuts of a larger bottleneck, up to range.high, have no smaller sum.
    range.high = bottleneck / kCostSlack / kCostSlack;
    if (hopeless() || range.low > range.high) continue;
    const double middle = range.low + (range.high - range.low) / 2;
    ranges.push_back({middle, range.high, range.least_sum});
    ranges.push_back({range.low, middle, range.least_sum});
  }
  return best;
}

}  // namespace pipec
