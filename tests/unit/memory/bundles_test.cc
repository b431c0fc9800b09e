#include "compiler/memory/bundles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace pipec {
namespace {

std::vector<BundledItem> RandomItems(std::mt19937& random, int n, int groups) {
  std::vector<BundledItem> items;
  for (int i = 0; i < n; ++i) {
    const auto lower = static_cast<int64_t>(random() % 50), size = static_cast<int64_t>(random() % 5000);
    items.push_back({{lower, lower + 1 + static_cast<int64_t>(random() % 20), size},
                     static_cast<int>(random() % groups)});
  }
  return items;
}

TEST(MakeBundles, FewStayAlone) {
  std::mt19937 random(1);
  const std::vector<BundledItem> items = RandomItems(random, 20, 3);
  const std::vector<Bundle> bundles = MakeBundles(items, 20);
  ASSERT_EQ(bundles.size(), items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(bundles[i].members, std::vector<int>{static_cast<int>(i)});
    EXPECT_EQ(bundles[i].offsets, std::vector<int64_t>{0});
    EXPECT_EQ(bundles[i].size, (items[i].item.size + 63) / 64 * 64);
  }
}

TEST(MakeBundles, ManyAreBundledWithTheirGroup) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    const int n = 20 + static_cast<int>(random() % 200), groups = 1 + static_cast<int>(random() % 5),
              most = 1 + static_cast<int>(random() % 19);
    const std::vector<BundledItem> items = RandomItems(random, n, groups);
    const std::vector<Bundle> bundles = MakeBundles(items, most);
    EXPECT_LE(static_cast<int>(bundles.size()), most + groups);
    std::set<int> seen;
    for (const Bundle& bundle : bundles) {
      MemoryLayout inside{{}, 0};
      std::vector<MemoryItem> own;
      for (size_t k = 0; k < bundle.members.size(); ++k) {
        const BundledItem& item = items[bundle.members[k]];
        EXPECT_EQ(item.group, items[bundle.members[0]].group);
        EXPECT_TRUE(seen.insert(bundle.members[k]).second);
        own.push_back(item.item);
      }
      inside.offsets = bundle.offsets;
      inside.peak = bundle.size;
      EXPECT_TRUE(CheckLayout(own, inside).ok()) << CheckLayout(own, inside);
    }
    EXPECT_EQ(static_cast<int>(seen.size()), n);
  }
}

// What dies together is put together: the last to die of one bundle before the first of the next.
TEST(MakeBundles, InTheOrderOfDeath) {
  std::mt19937 random(3);
  const std::vector<BundledItem> items = RandomItems(random, 100, 1);
  int64_t last = 0;
  for (const Bundle& bundle : MakeBundles(items, 8)) {
    for (const int member : bundle.members) EXPECT_GE(items[member].item.upper, last);
    for (const int member : bundle.members) last = std::max(last, items[member].item.upper);
  }
}

}  // namespace
}  // namespace pipec
