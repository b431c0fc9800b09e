// Valid orders of the blocks, besides the one they stand in.
#pragma once

#include <random>
#include <vector>

#include "compiler/partition/blocks.h"

namespace pipec {

class Orders {
 public:
  // `blocks` must outlive this.
  explicit Orders(const Blocks& blocks);

  // Of the blocks whose parents have all come, the one with the least key comes next.
  std::vector<int> ByKey(const std::vector<double>& keys) const;
  // Of them one drawn at random comes next.
  std::vector<int> Random(std::mt19937_64& random) const;
  // Of them one that became free last comes next; those that became free together in an order drawn at random.
  std::vector<int> DepthFirst(std::mt19937_64& random) const;

 private:
  const Blocks& blocks_;
  const std::vector<std::vector<int>> children_;
};

}  // namespace pipec
