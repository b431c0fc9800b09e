#include "compiler/partition/fixed_order.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int LowestBit(uint64_t word) { return __builtin_ctzll(word); }

}  // namespace

FixedOrderSolver::FixedOrderSolver(const Blocks& blocks, const StageRules& rules)
    : blocks_(blocks),
      S_(rules.stages()),
      fit_(rules, blocks.can_remake),
      remaining_(blocks.size() + 1, 0),
      remaining_speed_(S_ + 1, 0),
      first_end_(S_),
      jump_(blocks),
      reached_(blocks.size() + 1, S_),
      from_(static_cast<size_t>(blocks.size() + 1) * (S_ + 1)),
      cut_(S_) {
  for (int i = blocks.size() - 1; i >= 0; --i) remaining_[i] = remaining_[i + 1] + blocks.blocks[i].seconds;
  for (int s = S_ - 1; s >= 0; --s) remaining_speed_[s] = remaining_speed_[s + 1] + rules.speed[s];
}

void FixedOrderSolver::Prune(int i, double limit) {
  const int least = std::max(0, S_ - (blocks_.size() - i));  // at least a block for each stage
  for (int s = 0; s <= S_; ++s) {
    if (!reached_.Has(i, s)) continue;
    const bool too_much =
        s < S_ ? remaining_[i] > remaining_speed_[s] * limit * kCostSlack : i < blocks_.size();
    if (too_much && s < S_) next_limit_ = std::min(next_limit_, remaining_[i] / remaining_speed_[s]);
    if (too_much || s < least) reached_.Remove(i, s);
  }
}

void FixedOrderSolver::FindFirstEnds(double limit) {
  for (int s = 0; s < S_; ++s) {
    // The last stage apart: nothing times an infinite limit.
    const double seconds = s + 1 < S_ ? remaining_speed_[s + 1] * limit * kCostSlack : 0;
    first_end_[s] = std::partition_point(remaining_.begin(), remaining_.end(),
                                         [seconds](double rest) { return rest > seconds; }) -
                    remaining_.begin();
  }
}

Segment FixedOrderSolver::Begin(int i) {
  int s = 0;  // the fewest stages leave the most time behind
  while (!reached_.Has(i, s)) ++s;
  if (s == S_ || first_end_[s] <= i + 1) return Segment(blocks_, i);
  const int end = first_end_[s] - 1;  // of no use, unless the limit were larger
  if (s + 1 < S_) next_limit_ = std::min(next_limit_, remaining_[end] / remaining_speed_[s + 1]);
  return jump_.Make(i, end);
}

template <typename Visit>
void FixedOrderSolver::ForEachSegment(int i, double limit, Visit visit) {
  const int n = blocks_.size();
  Segment segment = Begin(i);
  const StageFit::Classes classes = fit_.ClassesOf(reached_[i]);
  while (segment.end() < n) {
    segment.Grow();
    ++steps_;
    const double least = segment.cost().compute / classes.fastest;
    if (least > limit * kCostSlack) {
      next_limit_ = std::min(next_limit_, least);
      break;
    }
    if (!fit_.SomeHas(classes, segment.cost().bytes)) break;
    if (const uint64_t* stages = fit_.Within(classes, segment.cost(), limit, next_limit_)) visit(segment, stages);
  }
}

ThresholdSolver::Answer FixedOrderSolver::Probe(double limit) {
  const int n = blocks_.size(), words = reached_.words();
  reached_.Clear();
  reached_.Insert(0, 0);
  next_limit_ = kInfinity;
  FindFirstEnds(limit);
  for (int i = 0; i < n; ++i) {
    if (reached_.Empty(i)) continue;
    Prune(i, limit);
    if (reached_.Empty(i)) continue;
    const uint64_t* here = reached_[i];
    ForEachSegment(i, limit, [&](const Segment& segment, const uint64_t* stages) {
      const int j = segment.end();
      uint64_t* there = reached_[j];
      uint64_t carry = 0;
      for (int w = 0; w < words; ++w) {
        const uint64_t from = here[w] & stages[w];
        uint64_t fresh = ((from << 1) | carry) & ~there[w];
        carry = from >> 63;
        there[w] |= fresh;
        for (; fresh; fresh &= fresh - 1) {
          const int s = w * 64 + LowestBit(fresh);
          if (s <= S_) from_[static_cast<size_t>(j) * (S_ + 1) + s] = i;
        }
      }
    });
  }
  if (!reached_.Has(n, S_)) return Answer::kNo;
  FindPath();
  FindBottleneck();
  return Answer::kYes;
}

void FixedOrderSolver::FindPath() {
  int j = blocks_.size();
  for (int s = S_; s > 0; --s) j = cut_[s - 1] = from_[static_cast<size_t>(j) * (S_ + 1) + s];
}

void FixedOrderSolver::FindBottleneck() {
  bottleneck_ = 0;
  for (int s = 0; s < S_; ++s) {
    const Segment segment = jump_.Make(cut_[s], s + 1 < S_ ? cut_[s + 1] : blocks_.size());
    bottleneck_ = std::max(bottleneck_, fit_.Seconds(s, segment.cost()));
  }
}

std::vector<int> FixedOrderSolver::Best(double limit, Least least, double& sum) {
  const int n = blocks_.size(), words = reached_.words();
  const auto at = [this](int i, int s) { return static_cast<size_t>(i) * (S_ + 1) + s; };
  std::vector<double> sums(static_cast<size_t>(n + 1) * (S_ + 1), kInfinity);
  std::vector<int> next(sums.size(), -1);
  StageSets finishes(n + 1, S_);
  finishes.Insert(n, S_);
  sums[at(n, S_)] = 0;
  for (int i = n - 1; i >= 0; --i) {
    if (reached_.Empty(i)) continue;
    ForEachSegment(i, limit, [&](const Segment& segment, const uint64_t* stages) {
      const int j = segment.end();
      for (int w = 0; w < words; ++w) {
        const uint64_t above = w + 1 < words ? finishes[j][w + 1] << 63 : 0;
        uint64_t both = reached_[i][w] & stages[w] & (finishes[j][w] >> 1 | above);
        for (; both; both &= both - 1) {
          const int s = w * 64 + LowestBit(both);
          const double seconds = fit_.Seconds(s, segment.cost());
          const double total = (least == Least::kSum ? seconds : seconds * seconds) + sums[at(j, s + 1)];
          if (total * kCostSlack >= sums[at(i, s)]) continue;
          sums[at(i, s)] = total;
          next[at(i, s)] = j;
          finishes.Insert(i, s);
        }
      }
    });
  }
  std::vector<int> stage_of(n, S_ - 1);
  for (int s = 0, i = 0; s < S_; ++s) {
    cut_[s] = i;
    const int end = next[at(i, s)];
    std::fill(stage_of.begin() + i, stage_of.begin() + end, s);
    i = end;
  }
  FindBottleneck();
  sum = sums[at(0, 0)];
  return stage_of;
}

}  // namespace pipec
