#include "compiler/partition/orders.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace pipec {
namespace {

// Draws the same numbers with every standard library.
int Draw(std::mt19937_64& random, int below) { return static_cast<int>(random() % below); }

void Shuffle(std::vector<int>& values, size_t from, std::mt19937_64& random) {
  for (size_t k = values.size(); k > from + 1; --k)
    std::swap(values[k - 1], values[from + Draw(random, static_cast<int>(k - from))]);
}

// Calls take() for the next block, and add(block) for each that becomes free.
template <typename Add, typename Take, typename Freed>
std::vector<int> Walk(const Blocks& blocks, const std::vector<std::vector<int>>& children, Add add, Take take,
                      Freed freed) {
  std::vector<int> missing(blocks.size()), order;
  for (int block = 0; block < blocks.size(); ++block) {
    missing[block] = static_cast<int>(blocks.parents[block].size());
    if (missing[block] == 0) add(block);
  }
  freed();
  while (static_cast<int>(order.size()) < blocks.size()) {
    order.push_back(take());
    for (int child : children[order.back()]) {
      if (--missing[child] == 0) add(child);
    }
    freed();
  }
  return order;
}

}  // namespace

Orders::Orders(const Blocks& blocks) : blocks_(blocks), children_(Children(blocks)) {}

std::vector<int> Orders::ByKey(const std::vector<double>& keys) const {
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> free;
  return Walk(
      blocks_, children_,
      [&](int block) {
        free.push({keys[block], block});
      },
      [&] {
        const int block = free.top().second;
        free.pop();
        return block;
      },
      [] {});
}

std::vector<int> Orders::Random(std::mt19937_64& random) const {
  std::vector<int> free;
  return Walk(
      blocks_, children_, [&](int block) { free.push_back(block); },
      [&] {
        std::swap(free[Draw(random, static_cast<int>(free.size()))], free.back());
        const int block = free.back();
        free.pop_back();
        return block;
      },
      [] {});
}

std::vector<int> Orders::DepthFirst(std::mt19937_64& random) const {
  std::vector<int> free;
  size_t before = 0;
  return Walk(
      blocks_, children_, [&](int block) { free.push_back(block); },
      [&] {
        const int block = free.back();
        free.pop_back();
        before = free.size();
        return block;
      },
      [&] { Shuffle(free, before, random); });
}

}  // namespace pipec
