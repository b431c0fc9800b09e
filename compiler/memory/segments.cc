#include "compiler/memory/segments.h"

#include <algorithm>
#include <limits>

namespace pipec {
namespace {

constexpr int kMostPlaces = 512;
constexpr double kSizeRatio = 1.05;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// At most kMostPlaces positions, ascending: of equal stretches of the sequence the one with least crossing.
std::vector<int> PlacesToCut(const std::vector<int64_t>& crossing) {
  const int n = static_cast<int>(crossing.size()), stretches = std::min(n, kMostPlaces);
  std::vector<int> places;
  for (int i = 0; i < stretches; ++i) {
    const auto begin = crossing.begin() + int64_t{n} * i / stretches;
    const auto end = crossing.begin() + int64_t{n} * (i + 1) / stretches;
    places.push_back(static_cast<int>(std::min_element(begin, end) - crossing.begin()));
  }
  return places;
}

// The cuts with least crossing such that no segment makes more than `most`.
class CheapestCuts {
 public:
  // sums[k]: made by the first k nodes. Ends of segments: places[i] + 1, and the end of the sequence.
  CheapestCuts(const SegmentProblem& problem, const std::vector<int>& places,
               const std::vector<int64_t>& sums)
      : problem_(problem), places_(places), sums_(sums) {}

  // False if a stretch between two places alone makes more.
  bool Find(int64_t most, std::vector<int>& cuts) const {
    const int count = static_cast<int>(places_.size());
    // cost[i]: of cutting behind places[i - 1], [0] for the beginning; [count + 1]: the end, which costs nothing.
    std::vector<int64_t> cost(count + 2, kNever);
    std::vector<int> from(count + 2, -1);
    cost[0] = 0;
    for (int i = 1; i <= count + 1; ++i) {
      for (int j = i - 1; j >= 0 && sums_[End(i)] - sums_[End(j)] <= most; --j) {
        if (cost[j] < cost[i]) cost[i] = cost[j], from[i] = j;
      }
      if (cost[i] != kNever && i <= count) cost[i] += problem_.crossing[places_[i - 1]];
    }
    if (cost[count + 1] == kNever) return false;
    cuts.clear();
    for (int i = from[count + 1]; i > 0; i = from[i]) cuts.push_back(places_[i - 1]);
    std::reverse(cuts.begin(), cuts.end());
    return true;
  }

 private:
  int End(int i) const {
    if (i == 0) return 0;
    return i <= static_cast<int>(places_.size()) ? places_[i - 1] + 1
                                                 : static_cast<int>(problem_.made.size());
  }

  const SegmentProblem& problem_;
  const std::vector<int>& places_;
  const std::vector<int64_t>& sums_;
};

}  // namespace

int64_t SegmentBytes(const SegmentProblem& problem, const std::vector<int>& cuts) {
  int64_t crossing = 0, largest = 0;
  int begin = 0;
  auto close = [&](int end) {
    int64_t made = 0;
    for (int k = begin; k < end; ++k) made += problem.made[k];
    largest = std::max(largest, made);
    begin = end;
  };
  for (const int cut : cuts) {
    crossing += problem.crossing[cut];
    close(cut + 1);
  }
  close(static_cast<int>(problem.made.size()));
  return problem.in_flight * crossing + largest;
}

std::vector<int> CutSegments(const SegmentProblem& problem) {
  std::vector<int64_t> sums(1, 0);
  for (const int64_t made : problem.made) sums.push_back(sums.back() + made);
  const std::vector<int> places = PlacesToCut(problem.crossing);
  const CheapestCuts cheapest(problem, places, sums);
  std::vector<int> best, cuts;
  int64_t best_bytes = SegmentBytes(problem, best);
  for (double most = sums.back(); most >= 1 && cheapest.Find(static_cast<int64_t>(most), cuts);
       most /= kSizeRatio) {
    const int64_t bytes = SegmentBytes(problem, cuts);
    if (bytes < best_bytes) best = cuts, best_bytes = bytes;
  }
  return best;
}

}  // namespace pipec
