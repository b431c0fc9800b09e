#include "compiler/memory/canonical_search.h"

#include <algorithm>
#include <tuple>

#include "compiler/memory/aligned.h"

namespace pipec {

CanonicalSearch::CanonicalSearch(absl::Span<const MemoryItem> items) : neighbours_(items.size()) {
  std::vector<int64_t> times;
  for (const MemoryItem& item : items) {
    times.push_back(item.lower);
    times.push_back(item.upper);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto section = [&](int64_t time) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  for (const MemoryItem& item : items) {
    lower_.push_back(section(item.lower));
    upper_.push_back(section(item.upper));
    size_.push_back(Aligned(item.size));
  }
  const int n = static_cast<int>(items.size());
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      if (a != b && SameTime(a, b)) neighbours_[a].push_back(b);
    }
  }
  to_come_.resize(times.size());
  crossing_.resize(times.size());
  section_floor_.resize(times.size());
  Reset();
  for (int i = 0; i < n; ++i) {
    fullest_.push_back(*std::max_element(to_come_.begin() + lower_[i], to_come_.begin() + upper_[i]));
  }
}

void CanonicalSearch::Reset() {
  const int n = static_cast<int>(size_.size());
  lowest_.assign(n, 0);
  is_placed_.assign(n, 0);
  placed_at_.assign(n, 0);
  placed_.clear();
  raised_.clear();
  pool_.clear();
  std::fill(to_come_.begin(), to_come_.end(), 0);
  std::fill(crossing_.begin(), crossing_.end(), 0);
  for (int i = 0; i < n; ++i) {
    for (int t = lower_[i]; t < upper_[i]; ++t) {
      to_come_[t] += size_[i];
      crossing_[t] += t > lower_[i];
    }
    pool_.push_back(i);
  }
}

CanonicalSearch::Outcome CanonicalSearch::Run(int64_t capacity, absl::Span<const int> ranks, bool jump,
                                              int64_t steps) {
  Reset();
  capacity_ = capacity;
  ranks_ = ranks;
  jump_ = jump;
  limit_ = steps;
  steps_ = 0;
  ItemSet conflict(size_.size() / 64 + 1, 0);
  for (const Part part : Split({0, pool_.size()})) {
    if (!MayFit(part, {}, conflict)) return Outcome::kNone;
    const Outcome outcome = Solve(part, {}, conflict);
    if (outcome != Outcome::kFound) return jump_ ? Outcome::kGaveUp : outcome;
  }
  return Outcome::kFound;
}

CanonicalSearch::Outcome CanonicalSearch::Solve(Part part, Last last, ItemSet& conflict) {
  if (part.begin == part.end) return Outcome::kFound;
  if (steps_ > limit_) return Outcome::kGaveUp;
  int64_t lowest_top = capacity_ + 1;
  for (size_t k = part.begin; k < part.end; ++k) {
    lowest_top = std::min(lowest_top, std::max(lowest_[pool_[k]], last.offset) + size_[pool_[k]]);
  }
  std::vector<Last> candidates;
  for (size_t k = part.begin; k < part.end; ++k) {
    const Last candidate{lowest_[pool_[k]], ranks_[pool_[k]], pool_[k]};
    const bool in_order = std::tie(candidate.offset, candidate.rank) > std::tie(last.offset, last.rank);
    if (in_order && candidate.offset < lowest_top) candidates.push_back(candidate);
  }
  std::sort(candidates.begin(), candidates.end(), [](const Last& a, const Last& b) {
    return std::tie(a.offset, a.rank) < std::tie(b.offset, b.rank);
  });

  ItemSet of_all(jump_ ? conflict.size() : 0, 0), of_one;
  for (const Last& candidate : candidates) {
    const int i = candidate.item;
    of_one.assign(of_all.size(), 0);
    const Outcome outcome = Try(i, part, candidate, of_one);
    if (outcome != Outcome::kNone) return outcome;
    if (!jump_) continue;
    const bool had_a_part = of_one[i / 64] >> (i % 64) & 1;
    if (!had_a_part) of_all = of_one;
    of_one[i / 64] &= ~(uint64_t{1} << (i % 64));
    for (size_t w = 0; w < of_one.size(); ++w) of_all[w] |= of_one[w];
    if (!had_a_part) break;
  }
  for (size_t w = 0; w < of_all.size(); ++w) conflict[w] |= of_all[w];
  return Outcome::kNone;
}

CanonicalSearch::Outcome CanonicalSearch::Try(int item, Part part, Last last, ItemSet& conflict) {
  const size_t placed = placed_.size(), raised = raised_.size(), pooled = pool_.size();
  const bool splits = Place(item, last.offset);
  for (size_t k = part.begin; k < part.end; ++k) {
    if (pool_[k] != item) pool_.push_back(pool_[k]);
  }
  const Part rest{pooled, pool_.size()};
  std::vector<Part> parts;
  if (splits) {
    parts = Split(rest);
  } else {
    parts.push_back(rest);
  }
  const auto may_fit = [&](const Part& p) { return MayFit(p, last, conflict); };
  Outcome outcome = std::all_of(parts.begin(), parts.end(), may_fit) ? Outcome::kFound : Outcome::kNone;
  for (size_t k = 0; k < parts.size() && outcome == Outcome::kFound; ++k) {
    outcome = Solve(parts[k], last, conflict);
  }
  pool_.resize(pooled);
  if (outcome != Outcome::kFound) TakeBack(placed, raised);
  return outcome;
}

bool CanonicalSearch::Place(int item, int64_t offset) {
  const int64_t top = offset + size_[item];
  placed_at_[item] = offset;
  is_placed_[item] = 1;
  placed_.push_back(item);
  bool splits = false;
  for (int t = lower_[item]; t < upper_[item]; ++t) {
    to_come_[t] -= size_[item];
    if (t > lower_[item]) splits |= --crossing_[t] == 0;
  }
  for (const int other : neighbours_[item]) {
    if (is_placed_[other] || lowest_[other] >= top) continue;
    raised_.push_back({other, lowest_[other]});
    lowest_[other] = top;
  }
  return splits;
}

void CanonicalSearch::TakeBack(size_t placed, size_t raised) {
  for (; raised_.size() > raised; raised_.pop_back()) lowest_[raised_.back().item] = raised_.back().from;
  for (; placed_.size() > placed; placed_.pop_back()) {
    const int item = placed_.back();
    is_placed_[item] = 0;
    for (int t = lower_[item]; t < upper_[item]; ++t) {
      to_come_[t] += size_[item];
      crossing_[t] += t > lower_[item];
    }
  }
}

std::vector<CanonicalSearch::Part> CanonicalSearch::Split(Part rest) {
  std::sort(pool_.begin() + rest.begin, pool_.begin() + rest.end,
            [&](int a, int b) { return std::tie(lower_[a], a) < std::tie(lower_[b], b); });
  std::vector<Part> parts;
  int end = -1;
  for (size_t k = rest.begin; k < rest.end; ++k) {
    if (lower_[pool_[k]] >= end) parts.push_back({k, k});
    parts.back().end = k + 1;
    end = std::max(end, upper_[pool_[k]]);
  }
  // What is small is soon done: if it fails, that is all.
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.end - a.begin < b.end - b.begin; });
  return parts;
}

bool CanonicalSearch::MayFit(Part part, Last last, ItemSet& conflict) {
  steps_ += static_cast<int64_t>(part.end - part.begin);
  int begin = static_cast<int>(section_floor_.size()), end = 0;
  for (size_t k = part.begin; k < part.end; ++k) {
    begin = std::min(begin, lower_[pool_[k]]);
    end = std::max(end, upper_[pool_[k]]);
  }
  std::fill(section_floor_.begin() + begin, section_floor_.begin() + std::max(begin, end), capacity_);
  for (size_t k = part.begin; k < part.end; ++k) {
    const int i = pool_[k];
    const int64_t offset = std::max(lowest_[i], last.offset);
    if (offset + size_[i] > capacity_) {
      if (jump_) Blame(i, capacity_ - size_[i] + 1, last, conflict);
      return false;
    }
    for (int t = lower_[i]; t < upper_[i]; ++t) section_floor_[t] = std::min(section_floor_[t], offset);
  }
  for (int t = begin; t < end; ++t) {
    if (to_come_[t] == 0 || section_floor_[t] + to_come_[t] <= capacity_) continue;
    for (size_t k = part.begin; jump_ && k < part.end; ++k) {
      const int i = pool_[k];
      if (lower_[i] <= t && t < upper_[i]) Blame(i, capacity_ - to_come_[t] + 1, last, conflict);
    }
    return false;
  }
  return true;
}

void CanonicalSearch::Blame(int item, int64_t offset, Last last, ItemSet& conflict) const {
  if (offset <= 0) return;
  const auto below = std::find_if(placed_.begin(), placed_.end(), [&](int p) {
    return placed_at_[p] + size_[p] >= offset && SameTime(p, item);
  });
  const int blamed = below != placed_.end() ? *below : last.item;
  if (blamed >= 0) conflict[blamed / 64] |= uint64_t{1} << (blamed % 64);
}

}  // namespace pipec
