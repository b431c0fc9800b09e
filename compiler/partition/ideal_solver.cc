#include "compiler/partition/ideal_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int LowestBit(uint64_t word) { return __builtin_ctzll(word); }

}  // namespace

IdealSolver::IdealSolver(const Blocks& blocks, const Ideals& ideals, const StageRules& rules,
                         int64_t most_pairs)
    : blocks_(blocks),
      ideals_(ideals),
      S_(rules.stages()),
      fit_(rules, blocks.can_remake),
      costs_(blocks, ideals),
      most_pairs_(most_pairs),
      front_speed_(S_ + 1, 0),
      slowest_(*std::min_element(rules.speed.begin(), rules.speed.end())),
      possible_(ideals.size(), S_),
      reached_(ideals.size(), S_),
      from_(static_cast<size_t>(ideals.size()) * (S_ + 1)),
      stage_seconds_(S_) {
  for (int s = 0; s < S_; ++s) front_speed_[s + 1] = front_speed_[s] + rules.speed[s];
  for (const Ideal& ideal : ideals.ideals) {
    seconds_.push_back(static_cast<double>(ideal.seconds));
    crossing_.push_back(static_cast<double>(ideal.crossing_seconds));
  }
}

// A tensor that crosses the boundary behind an ideal is paid by a stage in front of it and by one behind it.
void IdealSolver::FindPossible(double limit) {
  possible_.Clear();
  const int n = blocks_.size();
  const double slack = 1e-9 * limit * front_speed_[S_];
  for (int k = 0; k < ideals_.size(); ++k) {
    const double front = seconds_[k] + slowest_ * crossing_[k];
    const double behind = seconds_.back() - seconds_[k] + slowest_ * crossing_[k];
    const int held = ideals_.ideals[k].held;
    for (int j = std::max(0, S_ - (n - held)); j <= std::min(S_, held); ++j) {
      // No stage is apart: nothing times an infinite limit.
      if (j == 0 ? held > 0 : front > front_speed_[j] * limit + slack) continue;
      if (j == S_ ? held < n : behind > (front_speed_[S_] - front_speed_[j]) * limit + slack) continue;
      possible_.Insert(k, j);
    }
  }
}

template <typename Wanted, typename Visit>
bool IdealSolver::ForEachStage(int a, double limit, Wanted wanted, Visit visit) {
  const Ideal& from = ideals_.ideals[a];
  costs_.StartFrom(a);
  const StageFit::Classes classes = fit_.ClassesOf(reached_[a]);
  const double most = classes.fastest * limit * kCostSlack, slack = 1e-9 * limit;
  double unused = 0;
  for (int b = a + 1; b < ideals_.size(); ++b) {
    ++pairs_;
    const double seconds = seconds_[b] - seconds_[a];
    if (seconds > most + slack) break;
    if (!wanted(b)) continue;
    if (seconds + classes.fastest * (std::abs(crossing_[b] - crossing_[a]) - slack) > most + slack) continue;
    if (!ideals_.Inside(from, ideals_.ideals[b])) continue;
    pairs_ += 4;
    const StageCost cost = costs_.CostTo(b);
    if (const uint64_t* stages = fit_.Within(classes, cost, limit, unused)) visit(b, cost, stages);
  }
  return pairs_ < most_pairs_;
}

ThresholdSolver::Answer IdealSolver::Probe(double limit) {
  limit_ = limit;
  if (pairs_ >= most_pairs_) return Answer::kGaveUp;
  FindPossible(limit);
  reached_.Clear();
  if (possible_.Has(0, 0)) reached_.Insert(0, 0);
  const int words = reached_.words(), last = ideals_.size() - 1;
  for (int a = 0; a < last; ++a) {
    if (reached_.Empty(a)) continue;
    const uint64_t* here = reached_[a];
    const auto fresh_at = [&](int b, int w) {
      const uint64_t below = w > 0 ? here[w - 1] >> 63 : 0;
      return (here[w] << 1 | below) & possible_[b][w] & ~reached_[b][w];
    };
    const auto wanted = [&](int b) {
      for (int w = 0; w < words; ++w) {
        if (fresh_at(b, w)) return true;
      }
      return false;
    };
    const bool go_on = ForEachStage(
        a, limit, wanted, [&](int b, const StageCost&, const uint64_t* stages) {
          for (int w = 0; w < words; ++w) {
            const uint64_t below = w > 0 ? stages[w - 1] >> 63 : 0;
            uint64_t fresh = fresh_at(b, w) & (stages[w] << 1 | below);
            reached_[b][w] |= fresh;
            for (; fresh; fresh &= fresh - 1)
              from_[static_cast<size_t>(b) * (S_ + 1) + w * 64 + LowestBit(fresh)] = a;
          }
        });
    if (!go_on) break;
  }
  if (!reached_.Has(last, S_)) return pairs_ < most_pairs_ ? Answer::kNo : Answer::kGaveUp;
  StagesBetween(Path());
  return Answer::kYes;
}

std::vector<int> IdealSolver::Path() const {
  std::vector<int> boundaries(S_ + 1);
  boundaries[S_] = ideals_.size() - 1;
  for (int s = S_; s > 0; --s) boundaries[s - 1] = from_[static_cast<size_t>(boundaries[s]) * (S_ + 1) + s];
  return boundaries;
}

std::vector<int> IdealSolver::StagesBetween(const std::vector<int>& boundaries) {
  std::vector<int> stage_of(blocks_.size(), 0);
  for (int s = 0; s < S_; ++s) {
    const Ideal& from = ideals_.ideals[boundaries[s]];
    costs_.StartFrom(boundaries[s]);
    stage_seconds_[s] = fit_.Seconds(s, costs_.CostTo(boundaries[s + 1]));
    for (int block = 0; block < blocks_.size(); ++block) {
      if (s > 0 && !ideals_.Has(from, block)) stage_of[block] = s;
    }
  }
  bottleneck_ = *std::max_element(stage_seconds_.begin(), stage_seconds_.end());
  return stage_of;
}

std::vector<int> IdealSolver::Best(double limit, Least least, double& sum) {
  const int words = reached_.words(), last = ideals_.size() - 1;
  const auto at = [this](int ideal, int s) { return static_cast<size_t>(ideal) * (S_ + 1) + s; };
  std::vector<double> sums(static_cast<size_t>(ideals_.size()) * (S_ + 1), kInfinity);
  std::vector<int> next(sums.size(), -1);
  StageSets finishes(ideals_.size(), S_);
  finishes.Insert(last, S_);
  sums[at(last, S_)] = 0;
  bool complete = true;
  for (int a = last - 1; a >= 0 && complete; --a) {
    const auto both_at = [&](int b, int w) {
      const uint64_t above = w + 1 < words ? finishes[b][w + 1] << 63 : 0;
      return reached_[a][w] & (finishes[b][w] >> 1 | above);
    };
    const auto wanted = [&](int b) {
      for (int w = 0; w < words; ++w) {
        if (both_at(b, w)) return true;
      }
      return false;
    };
    if (reached_.Empty(a)) continue;
    complete = ForEachStage(
        a, limit, wanted, [&](int b, const StageCost& cost, const uint64_t* stages) {
          for (int w = 0; w < words; ++w) {
            for (uint64_t both = both_at(b, w) & stages[w]; both; both &= both - 1) {
              const int s = w * 64 + LowestBit(both);
              const double seconds = fit_.Seconds(s, cost);
              const double total = (least == Least::kSum ? seconds : seconds * seconds) + sums[at(b, s + 1)];
              if (total * kCostSlack >= sums[at(a, s)]) continue;
              sums[at(a, s)] = total;
              next[at(a, s)] = b;
              finishes.Insert(a, s);
            }
          }
        });
  }
  std::vector<int> boundaries = Path();
  for (int s = 0; s < S_ && complete; ++s) boundaries[s + 1] = next[at(boundaries[s], s)];
  std::vector<int> stage_of = StagesBetween(boundaries);
  sum = 0;
  for (double seconds : stage_seconds_) sum += least == Least::kSum ? seconds : seconds * seconds;
  return stage_of;
}

}  // namespace pipec
