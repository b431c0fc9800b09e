// What the stage between two ideals costs.
#pragma once

#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/ideals.h"

namespace pipec {

class IdealCosts {
 public:
  // Both must outlive this; `ideals` are those of `blocks`.
  IdealCosts(const Blocks& blocks, const Ideals& ideals);

  // All that follows is asked of stages that begin behind this ideal.
  void StartFrom(int ideal);
  // Of the stage that ends with this ideal, in which the other lies. Time: the tensors and shared parameters that
  // cross it.
  StageCost CostTo(int ideal) const;

 private:
  const Blocks& blocks_;
  const Ideals& ideals_;
  std::vector<HeldBytes> bytes_of_group_;
  const Ideal* from_ = nullptr;
  std::vector<int> held_tensor_, held_group_;  // in `from_`; 0: does not cross
  std::vector<int> marked_tensors_, marked_groups_;
};

}  // namespace pipec
