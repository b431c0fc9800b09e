// How much lies in front of a block whatever the order: the block with all its ancestors.
#pragma once

#include <vector>

namespace pipec {

// By block: the block together with all its ancestors.
struct Ancestry {
  std::vector<double> seconds;
  std::vector<int> blocks;
};

// `parents` have smaller numbers than their children. Time: edges * blocks / 64 at most; near linear if again
// and again there is a block that all blocks in front of it lead to.
Ancestry SumAncestors(const std::vector<std::vector<int>>& parents, const std::vector<double>& seconds);

}  // namespace pipec
