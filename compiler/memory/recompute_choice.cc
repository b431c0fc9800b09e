#include "compiler/memory/recompute_choice.h"

#include <algorithm>
#include <limits>
#include <set>

namespace pipec {
namespace {

constexpr size_t kMostPoints = 4096;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// What the units so far can come to.
struct Point {
  int64_t bytes = 0;
  double seconds = 0;
  int from = 0;    // point of the units before
  int option = 0;  // of the last unit
};

// Keeps the points of which none has fewer bytes in as few seconds; ascending in bytes.
void Prune(std::vector<Point>& points) {
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds;
  });
  size_t kept = 0;
  for (const Point& point : points) {
    if (kept == 0 || point.seconds < points[kept - 1].seconds) points[kept++] = point;
  }
  points.resize(kept);
  if (kept <= kMostPoints) return;
  // Too many: the ends and what lies evenly between.
  for (size_t k = 0; k < kMostPoints; ++k) points[k] = points[k * (kept - 1) / (kMostPoints - 1)];
  points.resize(kMostPoints);
}

// The fewest bytes of a unit with options that remake no more than `most`.
int64_t LeastBytes(const RecomputeUnit& unit, int64_t most) {
  int64_t least = kNever;
  for (const RecomputeOption& option : unit) {
    if (option.remade <= most) least = std::min(least, option.bytes);
  }
  return least;
}

struct Choice {
  Point total;
  std::vector<int> options;
};

// With options that remake no more than `most`.
std::optional<Choice> Choose(absl::Span<const RecomputeUnit> units, int64_t most, int64_t budget) {
  int64_t least_left = 0;
  for (const RecomputeUnit& unit : units) {
    const int64_t least = LeastBytes(unit, most);
    if (least == kNever) return std::nullopt;
    least_left += least;
  }
  std::vector<std::vector<Point>> fronts(1, {Point{}});
  for (const RecomputeUnit& unit : units) {
    least_left -= LeastBytes(unit, most);
    std::vector<Point> next;
    for (int p = 0; p < static_cast<int>(fronts.back().size()); ++p) {
      const Point& point = fronts.back()[p];
      for (int k = 0; k < static_cast<int>(unit.size()); ++k) {
        const int64_t bytes = point.bytes + unit[k].bytes;
        if (unit[k].remade <= most && bytes + least_left <= budget)
          next.push_back({bytes, point.seconds + unit[k].seconds, p, k});
      }
    }
    Prune(next);
    if (next.empty()) return std::nullopt;
    fronts.push_back(std::move(next));
  }
  Choice choice{fronts.back().back(), std::vector<int>(units.size())};
  int p = static_cast<int>(fronts.back().size()) - 1;
  for (size_t u = units.size(); u > 0; --u) {
    choice.options[u - 1] = fronts[u][p].option;
    p = fronts[u][p].from;
  }
  return choice;
}

std::set<int64_t> AmountsRemade(absl::Span<const RecomputeUnit> units) {
  std::set<int64_t> amounts = {0};
  for (const RecomputeUnit& unit : units) {
    for (const RecomputeOption& option : unit) amounts.insert(option.remade);
  }
  return amounts;
}

}  // namespace

std::optional<std::vector<int>> ChooseRecompute(absl::Span<const RecomputeUnit> units, int64_t budget) {
  std::optional<Choice> best;
  for (const int64_t most : AmountsRemade(units)) {
    std::optional<Choice> choice = Choose(units, most, budget - most);
    if (!choice) continue;
    const bool better =
        !best || choice->total.seconds < best->total.seconds ||
        (choice->total.seconds == best->total.seconds && choice->total.bytes < best->total.bytes);
    if (better) best = std::move(choice);
  }
  if (!best) return std::nullopt;
  return std::move(best->options);
}

int64_t LeastRecomputeBudget(absl::Span<const RecomputeUnit> units) {
  int64_t least = kNever;
  for (const int64_t most : AmountsRemade(units)) {
    int64_t bytes = most;
    for (const RecomputeUnit& unit : units) {
      const int64_t of_unit = LeastBytes(unit, most);
      bytes = of_unit == kNever || bytes == kNever ? kNever : bytes + of_unit;
    }
    least = std::min(least, bytes);
  }
  return least;
}

}  // namespace pipec
