#include "compiler/partition/ancestors.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace pipec {
namespace {

// By block: all blocks in front of this place are its ancestors. At least so many are known from the
// collectors, the blocks that all blocks in front of them lead to: for those, each has a child up to there.
std::vector<int> KnownAncestors(const std::vector<std::vector<int>>& parents) {
  const int n = parents.size();
  std::vector<int> first_child(n, n), known(n, 0);
  for (int i = 0; i < n; ++i) {
    for (int parent : parents[i]) first_child[parent] = std::min(first_child[parent], i);
  }
  int reach = 0;  // the last of the first children so far
  for (int i = 0; i < n; ++i) {
    for (int parent : parents[i]) known[i] = std::max(known[i], known[parent]);
    if (reach <= i) known[i] = i;
    reach = std::max(reach, first_child[i]);
  }
  return known;
}

}  // namespace

// Sets of ancestors are walked in windows of 64 candidates, for each block those that KnownAncestors leaves
// open.
Ancestry SumAncestors(const std::vector<std::vector<int>>& parents, const std::vector<double>& seconds) {
  const int n = parents.size();
  Ancestry sums{std::vector<double>(n, 0), std::vector<int>(n, 0)};
  std::vector<int> open(KnownAncestors(parents));  // by block: the first window of candidates not known
  std::vector<std::vector<int>> opened(n / 64 + 1);
  for (int i = 0; i < n; ++i) opened[open[i] /= 64].push_back(i);

  std::vector<uint64_t> masks(n);
  std::vector<int> walked, merged;  // ascending
  double seconds_before = 0;
  for (int first = 0; first < n; first += 64) {
    const int last = std::min(first + 64, n), window = first / 64;
    double all = 0;
    for (int i = first; i < last; ++i) all += seconds[i];
    const uint64_t full = last - first == 64 ? ~uint64_t{0} : (uint64_t{1} << (last - first)) - 1;
    for (int i : opened[window]) {
      sums.blocks[i] = first;
      sums.seconds[i] = seconds_before;
    }
    seconds_before += all;
    merged.clear();
    std::merge(std::lower_bound(walked.begin(), walked.end(), first), walked.end(), opened[window].begin(),
               opened[window].end(), std::back_inserter(merged));
    walked.swap(merged);
    for (int i : walked) {
      uint64_t mask = i < last ? uint64_t{1} << (i - first) : 0;
      for (int parent : parents[i]) {
        if (open[parent] > window) {
          mask = full;
        } else if (parent >= first) {
          mask |= masks[parent];
        }
      }
      masks[i] = mask;
      const int count = __builtin_popcountll(mask);
      sums.blocks[i] += count;
      double sum = 0;
      if (2 * count > last - first) {
        sum = all;
        for (uint64_t rest = full & ~mask; rest; rest &= rest - 1)
          sum -= seconds[first + __builtin_ctzll(rest)];
      } else {
        for (uint64_t rest = mask; rest; rest &= rest - 1) sum += seconds[first + __builtin_ctzll(rest)];
      }
      sums.seconds[i] += sum;
    }
  }
  return sums;
}

}  // namespace pipec
