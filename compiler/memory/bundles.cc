#include "compiler/memory/bundles.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "compiler/memory/aligned.h"

namespace pipec {
namespace {

Bundle LayOut(absl::Span<const BundledItem> items, std::vector<int> members) {
  std::vector<MemoryItem> own;
  for (const int i : members) own.push_back(items[i].item);
  MemoryLayout layout = SolveLayout(own);
  return {std::move(members), std::move(layout.offsets), layout.peak};
}

}  // namespace

std::vector<Bundle> MakeBundles(absl::Span<const BundledItem> items, int most) {
  std::vector<Bundle> bundles;
  if (static_cast<int>(items.size()) <= most) {
    for (int i = 0; i < static_cast<int>(items.size()); ++i)
      bundles.push_back({{i}, {0}, Aligned(items[i].item.size)});
    return bundles;
  }
  int64_t grain = 0;
  for (const BundledItem& item : items) grain += Aligned(item.item.size);
  grain = grain / std::max(1, most) + 1;
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int i) {
    return std::tuple(items[i].group, items[i].item.upper, items[i].item.lower, i);
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  std::vector<int> members;
  int64_t bytes = 0;
  const auto close = [&] {
    if (!members.empty()) bundles.push_back(LayOut(items, std::move(members)));
    members.clear();
    bytes = 0;
  };
  for (const int i : order) {
    if (!members.empty() && items[members[0]].group != items[i].group) close();
    members.push_back(i);
    bytes += Aligned(items[i].item.size);
    if (bytes >= grain) close();
  }
  close();
  return bundles;
}

}  // namespace pipec
