#include "compiler/partition/stage_fit.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

StageFit::StageFit(const StageRules& rules, bool can_remake)
    : can_remake_(can_remake), members_(rules.stages(), rules.stages()), found_(1, rules.stages()) {
  const int S = rules.stages();
  const auto class_of = [&rules](int s) {
    // Without a cap it does not matter how often anything is kept.
    return StageClass{rules.cap[s] == kNoCap ? Copies{} : rules.copies[s], rules.cap[s], rules.speed[s]};
  };
  const auto key = [](const StageClass& kind) {
    return std::tuple(-kind.copies.microbatches, -kind.copies.versions, kind.cap, kind.speed);
  };
  for (int s = 0; s < S; ++s) classes_.push_back(class_of(s));
  std::sort(classes_.begin(), classes_.end(),
            [&key](const StageClass& a, const StageClass& b) { return key(a) < key(b); });
  classes_.erase(std::unique(classes_.begin(), classes_.end(),
                             [&key](const StageClass& a, const StageClass& b) { return key(a) == key(b); }),
                 classes_.end());
  const auto no_better = [](const StageClass& a, const StageClass& b) {
    return a.copies.versions >= b.copies.versions && a.cap <= b.cap && a.speed <= b.speed;
  };
  nested_ = classes_.end() == std::adjacent_find(classes_.begin(), classes_.end(),
                                                 [&no_better](const StageClass& a, const StageClass& b) {
                                                   return !no_better(a, b);
                                                 });
  for (int s = 0; s < S; ++s) {
    for (int k = 0; k < static_cast<int>(classes_.size()); ++k) {
      const bool same = key(class_of(s)) == key(classes_[k]);
      if (same) class_of_.push_back(k);
      if (same || (nested_ && key(classes_[k]) < key(class_of(s)))) members_.Insert(k, s);
    }
  }
}

double StageFit::Seconds(const StageClass& kind, const StageCost& cost) const {
  const double seconds = cost.compute / kind.speed + cost.messages;
  if (kind.cap == kNoCap) return seconds;
  if (!can_remake_)
    return BytesOf(cost.bytes, kind.copies) <= static_cast<double>(kind.cap) ? seconds : kInfinity;
  MemoryUse kept;
  kept.Add(cost.bytes, kind.copies);
  kept.Add(cost.remake, kind.copies);
  return seconds + kept.RemakeSeconds(static_cast<double>(kind.cap)) / kind.speed;
}

bool StageFit::SomeHas(const Classes& of, const HeldBytes& bytes) const {
  const auto has = [&bytes](const StageClass& kind) {
    return kind.cap == kNoCap || BytesOf(bytes, kind.copies) <= static_cast<double>(kind.cap);
  };
  return nested_ ? has(classes_[of.last])
                 : std::any_of(classes_.begin() + of.first, classes_.begin() + of.last + 1, has);
}

StageFit::Classes StageFit::ClassesOf(const uint64_t* stages) const {
  Classes range{static_cast<int>(classes_.size()) - 1, 0};
  for (int s = 0; s < static_cast<int>(class_of_.size()); ++s) {
    if (!(stages[s / 64] >> (s % 64) & 1)) continue;
    range.first = std::min(range.first, class_of_[s]);
    range.last = std::max(range.last, class_of_[s]);
  }
  for (int k = range.first; k <= range.last; ++k) range.fastest = std::max(range.fastest, classes_[k].speed);
  return range;
}

const uint64_t* StageFit::Within(const Classes& of, const StageCost& cost, double limit, double& next) const {
  const auto is_within = [&](const StageClass& kind) {
    double seconds = cost.compute / kind.speed + cost.messages;  // at least
    if (seconds <= limit * kCostSlack && kind.cap != kNoCap) seconds = Seconds(kind, cost);
    if (seconds <= limit * kCostSlack) return seconds < kInfinity;
    next = std::min(next, seconds);
    return false;
  };
  if (nested_) {
    // Most often not even the best of them is within it.
    if (!is_within(classes_[of.last])) return nullptr;
    const auto first = std::partition_point(classes_.begin() + of.first, classes_.begin() + of.last,
                                            [&](const StageClass& kind) { return !is_within(kind); });
    return members_[static_cast<int>(first - classes_.begin())];
  }
  found_.Clear();
  bool some = false;
  for (int k = of.first; k <= of.last; ++k) {
    if (!is_within(classes_[k])) continue;
    some = true;
    for (int w = 0; w < found_.words(); ++w) found_[0][w] |= members_[k][w];
  }
  return some ? found_[0] : nullptr;
}

}  // namespace pipec
