#include "compiler/partition/cut_candidates.h"

#include <algorithm>
#include <cmath>

namespace pipec {
namespace {

constexpr double kMostSteps = 8e6;
// Places on either side of a cut that are tried again.
constexpr int kNear = 32;

}  // namespace

CutSolver::CutSolver(const PartitionProblem& problem, const Blocks& blocks)
    : problem_(problem), blocks_(blocks) {
  const double steps = Steps();
  if (steps <= kMostSteps) return;
  const int count = static_cast<int>(blocks.size() * std::sqrt(kMostSteps / steps));
  spread_ = SpreadPlaces(std::max(count, 8 * problem.stages));
}

double CutSolver::Steps() const {
  const int n = blocks_.size();
  const double S = problem_.stages;
  double limit = blocks_.total_seconds / S;
  for (const Block& block : blocks_.blocks) limit = std::max(limit, block.seconds);
  limit *= 1.02;
  if (limit == 0) return static_cast<double>(n) * n / 2;
  double steps = 0, before = 0, inside = 0, before_first = 0;
  int first = 0, end = 0;
  for (int i = 0; i < n; ++i) {
    for (; end < n && inside + blocks_.blocks[end].seconds <= limit; ++end)
      inside += blocks_.blocks[end].seconds;
    const double least_stages = std::ceil(before / limit);
    const double most_stages = S - std::ceil((blocks_.total_seconds - before) / limit);
    // Ends from which the other stages cannot do the rest are skipped.
    const double least_before = blocks_.total_seconds - (S - least_stages - 1) * limit;
    for (; first < n && before_first < least_before; ++first) before_first += blocks_.blocks[first].seconds;
    if (least_stages <= most_stages) steps += std::max(0, end - std::max(i, first));
    before += blocks_.blocks[i].seconds;
    inside -= blocks_.blocks[i].seconds;
  }
  return steps;
}

std::vector<char> CutSolver::SpreadPlaces(int count) const {
  const int n = blocks_.size();
  std::vector<double> crossing(n + 1, 0);  // seconds of the tensors that cross the place in front of a block
  for (const BlockTensor& tensor : blocks_.tensors) {
    crossing[tensor.producer + 1] += tensor.seconds;
    crossing[tensor.consumers.back() + 1] -= tensor.seconds;
  }
  for (int i = 1; i <= n; ++i) crossing[i] += crossing[i - 1];
  double total_bytes = 0;
  for (const Block& block : blocks_.blocks) total_bytes += BytesOf(block.bytes, {});
  const auto share = [](double part, double all) { return all > 0 ? part / all : 0; };

  // Each place belongs to the part, of `count`, in which it lies when blocks weigh their share of the number
  // of blocks, of the seconds and of the bytes.
  std::vector<char> keep(n, 0);
  keep[0] = 1;
  double weight = 0;
  int part = 0, cheapest = -1;
  for (int i = 1; i < n; ++i) {
    const Block& block = blocks_.blocks[i - 1];
    weight += (1.0 / n + share(block.seconds, blocks_.total_seconds) +
               share(BytesOf(block.bytes, {}), total_bytes)) /
              3;
    const int here = static_cast<int>(weight * count);
    if (here != part && cheapest >= 0) {
      keep[cheapest] = 1;
      cheapest = -1;
    }
    part = here;
    if (cheapest < 0 || crossing[i] < crossing[cheapest]) cheapest = i;
  }
  if (cheapest >= 0) keep[cheapest] = 1;
  return keep;
}

std::optional<std::vector<int>> CutSolver::SolveAll(const Blocks& blocks, const StageRules& rules) const {
  FixedOrderSolver solver(blocks, rules);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double low = LeastLoad(blocks, rules);
  const ThresholdCut cut = problem_.microbatches > 0
                               ? LeastStepTime(solver, low, problem_.microbatches, kInfinity)
                               : LeastBottleneck(solver, low, kInfinity);
  if (!cut.stage_of) return std::nullopt;
  return solver.cut();
}

std::optional<std::vector<int>> CutSolver::SolveAt(const std::vector<char>& keep,
                                                   const StageRules& rules) const {
  PartitionProblem glued = problem_;
  std::vector<int> block_of;  // by block of `glued`
  for (int i = 0; i < blocks_.size(); ++i) {
    if (keep[i]) {
      block_of.push_back(i);
    } else {
      glued.items[blocks_.blocks[i].first_item].glued_to_previous = true;
    }
  }
  std::optional<std::vector<int>> cut = SolveAll(MakeBlocks(glued), rules);
  if (cut) {
    for (int& place : *cut) place = block_of[place];
  }
  return cut;
}

std::optional<std::vector<int>> CutSolver::Solve(const StageRules& rules) const {
  if (!spread_.empty()) {
    const std::optional<std::vector<int>> rough = SolveAt(spread_, rules);
    if (rough) {
      std::vector<char> near(blocks_.size(), 0);
      for (int place : *rough) {
        const int end = std::min(blocks_.size(), place + kNear + 1);
        for (int i = std::max(0, place - kNear); i < end; ++i) near[i] = 1;
      }
      near[0] = 1;
      return SolveAt(near, rules);
    }
  }
  return SolveAll(blocks_, rules);
}

}  // namespace pipec
