#include "compiler/partition/ideal_costs.h"

#include <algorithm>

namespace pipec {

IdealCosts::IdealCosts(const Blocks& blocks, const Ideals& ideals)
    : blocks_(blocks),
      ideals_(ideals),
      bytes_of_group_(blocks.shared_groups),
      held_tensor_(blocks.tensors.size(), 0),
      held_group_(blocks.shared_groups, 0) {
  for (const auto& uses : blocks.shared) {
    for (const SharedUse& use : uses) bytes_of_group_[use.group] = use.bytes;
  }
}

void IdealCosts::StartFrom(int ideal) {
  for (int t : marked_tensors_) held_tensor_[t] = 0;
  for (int group : marked_groups_) held_group_[group] = 0;
  marked_tensors_.clear();
  marked_groups_.clear();
  from_ = &ideals_.ideals[ideal];
  for (size_t k = from_->tensors; k < from_->tensors_end; ++k) {
    marked_tensors_.push_back(ideals_.crossing[k].id);
    held_tensor_[ideals_.crossing[k].id] = ideals_.crossing[k].held;
  }
  for (size_t k = from_->shared; k < from_->shared_end; ++k) {
    marked_groups_.push_back(ideals_.crossing[k].id);
    held_group_[ideals_.crossing[k].id] = ideals_.crossing[k].held;
  }
}

// A tensor that crosses both ideals is counted twice: once too often, and twice if none of its blocks lies between
// them. A shared parameter of which the first ideal has a user is needed again if there is one more in between.
StageCost IdealCosts::CostTo(int ideal) const {
  const Ideal& to = ideals_.ideals[ideal];
  StageCost cost;
  cost.compute = static_cast<double>(to.seconds - from_->seconds);
  long double messages = from_->crossing_seconds + to.crossing_seconds;
  for (size_t k = to.tensors; k < to.tensors_end; ++k) {
    const Crossing& crossing = ideals_.crossing[k];
    const int held = held_tensor_[crossing.id];
    if (held > 0) messages -= blocks_.tensors[crossing.id].seconds * (held == crossing.held ? 2 : 1);
  }
  cost.messages = std::max(0.0, static_cast<double>(messages));
  cost.bytes = to.bytes;
  cost.bytes -= from_->bytes;
  cost.bytes += from_->crossing_bytes;
  if (blocks_.can_remake) {
    cost.remake = to.remake;
    cost.remake -= from_->remake;
  }
  for (size_t k = to.shared; k < to.shared_end; ++k) {
    const Crossing& crossing = ideals_.crossing[k];
    if (held_group_[crossing.id] == crossing.held) cost.bytes -= bytes_of_group_[crossing.id];
  }
  return cost;
}

}  // namespace pipec
