// The least peak of a few buffers, by all orders.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "compiler/memory/layout.h"

namespace pipec {

inline std::vector<MemoryItem> RandomItems(std::mt19937& random, int n, int horizon, int longest,
                                           int largest) {
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::vector<MemoryItem> items;
  for (int i = 0; i < n; ++i) {
    const int lower = pick(0, horizon - 1);
    items.push_back({lower, std::min<int64_t>(horizon, lower + pick(1, longest)), pick(0, largest)});
  }
  return items;
}

// Seven items that do not fit into their bound, in any order, either direction of time, and sometimes beside an eighth.
inline std::vector<MemoryItem> ItemsAboveTheirBound(std::mt19937& random) {
  std::vector<MemoryItem> items = {{1, 3, 128}, {3, 6, 64},  {2, 6, 64}, {7, 10, 128},
                                   {2, 5, 64},  {1, 2, 128}, {5, 9, 128}};
  if (random() % 2) {
    for (MemoryItem& item : items) item = {10 - item.upper, 10 - item.lower, item.size};
  }
  if (random() % 4 == 0) items.push_back(RandomItems(random, 1, 11, 4, 128)[0]);
  std::shuffle(items.begin(), items.end(), random);
  return items;
}

// Some optimal layout stacks every item on another or on the floor, so it is found by placing the items in every order,
// each at its lowest place.
inline int64_t BruteForcePeak(const std::vector<MemoryItem>& items) {
  std::vector<int> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offsets(items.size());
    int64_t peak = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const MemoryItem& item = items[order[k]];
      int64_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < k; ++j) {
          const MemoryItem& other = items[order[j]];
          const int64_t end = offsets[order[j]] + (other.size + 63) / 64 * 64;
          if (other.lower < item.upper && item.lower < other.upper && offset < end &&
              offsets[order[j]] < offset + item.size) {
            offset = end;
            moved = true;
          }
        }
      }
      offsets[order[k]] = offset;
      peak = std::max(peak, offset + (item.size + 63) / 64 * 64);
    }
    best = std::min(best, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace pipec
