#include "compiler/partition/fixed_order.h"

#include <algorithm>
#include <cmath>

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Sums of the same numbers in another order differ by rounding: costs this close are equal.
constexpr double kSlack = 1 + 1e-12;

int LowestBit(uint64_t word) { return __builtin_ctzll(word); }

}  // namespace

FixedOrderSolver::FixedOrderSolver(const Blocks& blocks, std::vector<int> in_flight)
    : blocks_(blocks),
      S_(in_flight.size()),
      in_flight_(std::move(in_flight)),
      fitting_(S_ + 1, S_),
      remaining_(blocks.size() + 1, 0),
      first_end_(S_),
      jump_(blocks),
      reached_(blocks.size() + 1, S_),
      from_(static_cast<size_t>(blocks.size() + 1) * (S_ + 1)) {
  flights_ = in_flight_;
  std::sort(flights_.begin(), flights_.end());
  flights_.erase(std::unique(flights_.begin(), flights_.end()), flights_.end());
  for (int k = 0; k <= static_cast<int>(flights_.size()); ++k) {
    for (int s = 0; s < S_; ++s) {
      if (k == static_cast<int>(flights_.size()) || in_flight_[s] < flights_[k]) fitting_.Insert(k, s);
    }
  }
  for (int i = blocks.size() - 1; i >= 0; --i) remaining_[i] = remaining_[i + 1] + blocks.blocks[i].seconds;
}

int FixedOrderSolver::FittingClass(const Segment& segment, int64_t cap, int k) const {
  while (k > 0) {
    // In floating point: bytes times microbatches may exceed 64 bits.
    const double bytes =
        segment.parameter_bytes() + static_cast<double>(flights_[k - 1]) * segment.activation_bytes();
    if (bytes <= static_cast<double>(cap)) return k;
    --k;
  }
  return 0;
}

void FixedOrderSolver::Prune(int i, double limit) {
  // With s stages behind, S - s stages of at most `limit` and at least one block each are left.
  int most = S_;
  if (limit < kInfinity && limit > 0) {
    most = S_ - static_cast<int>(std::min<double>(S_ + 1, std::ceil(remaining_[i] / (limit * kSlack))));
  }
  const int least = std::max(0, S_ - (blocks_.size() - i));
  uint64_t* set = reached_[i];
  for (int s = 0; s <= S_; ++s) {
    if (s >= least && s <= most) continue;
    uint64_t& word = set[s / 64];
    const uint64_t bit = uint64_t{1} << (s % 64);
    if (s > most && (word & bit) && s < S_) next_limit_ = std::min(next_limit_, remaining_[i] / (S_ - s));
    word &= ~bit;
  }
}

void FixedOrderSolver::FindFirstEnds(double limit) {
  for (int s = 0; s < S_; ++s) {
    // The last stage apart: nothing times an infinite limit.
    const double seconds = s + 1 < S_ ? (S_ - s - 1) * limit * kSlack : 0;
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
  if (s + 1 < S_) next_limit_ = std::min(next_limit_, remaining_[end] / (S_ - s - 1));
  return jump_.Make(i, end);
}

bool FixedOrderSolver::Probe(double limit, int64_t cap) {
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
    Segment segment = Begin(i);
    int fitting = flights_.size();
    while (segment.end() < n) {
      segment.Grow();
      if (segment.compute() > limit * kSlack) {
        next_limit_ = std::min(next_limit_, segment.compute());
        break;
      }
      if (cap != kNoCap) fitting = FittingClass(segment, cap, fitting);
      if (fitting == 0) break;
      const double seconds = segment.seconds();
      if (seconds > limit * kSlack) {
        next_limit_ = std::min(next_limit_, seconds);
        continue;
      }
      const int j = segment.end();
      const uint64_t* fits = fitting_[fitting];
      uint64_t* there = reached_[j];
      uint64_t carry = 0;
      for (int w = 0; w < words; ++w) {
        const uint64_t from = here[w] & fits[w];
        uint64_t fresh = ((from << 1) | carry) & ~there[w];
        carry = from >> 63;
        there[w] |= fresh;
        for (; fresh; fresh &= fresh - 1) {
          const int s = w * 64 + LowestBit(fresh);
          if (s <= S_) from_[static_cast<size_t>(j) * (S_ + 1) + s] = i;
        }
      }
    }
  }
  return reached_.Has(n, S_);
}

std::vector<int> FixedOrderSolver::Path() const {
  std::vector<int> cut(S_);
  int j = blocks_.size();
  for (int s = S_; s > 0; --s) j = cut[s - 1] = from_[static_cast<size_t>(j) * (S_ + 1) + s];
  return cut;
}

double FixedOrderSolver::Bottleneck(const std::vector<int>& cut) const {
  double slowest = 0;
  for (int s = 0; s < S_; ++s) {
    Segment segment(blocks_, cut[s]);
    const int end = s + 1 < S_ ? cut[s + 1] : blocks_.size();
    while (segment.end() < end) segment.Grow();
    slowest = std::max(slowest, segment.seconds());
  }
  return slowest;
}

std::vector<int> FixedOrderSolver::Smoothest(double limit, int64_t cap) {
  const int n = blocks_.size(), words = reached_.words();
  const auto at = [this](int i, int s) { return static_cast<size_t>(i) * (S_ + 1) + s; };
  std::vector<double> squares(static_cast<size_t>(n + 1) * (S_ + 1), kInfinity);
  std::vector<int> next(squares.size(), -1);
  StageSets finishes(n + 1, S_);
  finishes.Insert(n, S_);
  squares[at(n, S_)] = 0;
  for (int i = n - 1; i >= 0; --i) {
    if (reached_.Empty(i)) continue;
    Segment segment = Begin(i);
    int fitting = flights_.size();
    while (segment.end() < n) {
      segment.Grow();
      if (segment.compute() > limit * kSlack) break;
      if (cap != kNoCap) fitting = FittingClass(segment, cap, fitting);
      if (fitting == 0) break;
      const double seconds = segment.seconds();
      if (seconds > limit * kSlack) continue;
      const int j = segment.end();
      for (int w = 0; w < words; ++w) {
        const uint64_t above = w + 1 < words ? finishes[j][w + 1] << 63 : 0;
        uint64_t both = reached_[i][w] & fitting_[fitting][w] & (finishes[j][w] >> 1 | above);
        for (; both; both &= both - 1) {
          const int s = w * 64 + LowestBit(both);
          const double sum = seconds * seconds + squares[at(j, s + 1)];
          if (sum * kSlack >= squares[at(i, s)]) continue;
          squares[at(i, s)] = sum;
          next[at(i, s)] = j;
          finishes.Insert(i, s);
        }
      }
    }
  }
  std::vector<int> cut(S_, 0);
  for (int s = 1; s < S_; ++s) cut[s] = next[at(cut[s - 1], s - 1)];
  return cut;
}

std::optional<std::vector<int>> FixedOrderSolver::Solve(int64_t cap) {
  // No limit below `low` can be met; a cut of bottleneck `high` is known.
  double low = blocks_.total_seconds / S_, high = kInfinity;
  for (const Block& block : blocks_.blocks) low = std::max(low, block.seconds);
  for (double factor = 1.02; high == kInfinity; factor = 1 + 2 * (factor - 1)) {
    const double limit = factor > 64 || low == 0 ? kInfinity : low * factor;
    if (Probe(limit, cap)) {
      high = Bottleneck(Path());
    } else if (limit == kInfinity) {
      return std::nullopt;
    } else {
      low = std::max(limit, next_limit_ == kInfinity ? limit : next_limit_);
    }
  }
  while (low * kSlack < high) {
    const double limit = low + (high - low) / 2;
    if (Probe(limit, cap)) {
      high = std::min(high, Bottleneck(Path()));
    } else {
      low = std::max(limit, next_limit_);
    }
  }
  Probe(high, cap);
  return Smoothest(high, cap);
}

}  // namespace pipec
