#include "compiler/partition/crossing_tensors.h"

namespace pipec {

CrossingTensors::CrossingTensors(const Blocks& blocks)
    : by_producer_(blocks.size()), by_last_use_(blocks.size()), position_(blocks.tensors.size()) {
  for (int t = 0; t < static_cast<int>(blocks.tensors.size()); ++t) {
    by_producer_[blocks.tensors[t].producer].push_back(t);
    by_last_use_[blocks.tensors[t].consumers.back()].push_back(t);
  }
}

void CrossingTensors::MoveTo(int place) {
  for (; place_ < place; ++place_) {
    for (int tensor : by_last_use_[place_]) Remove(tensor);
    for (int tensor : by_producer_[place_]) Add(tensor);
  }
  for (; place_ > place; --place_) {
    for (int tensor : by_producer_[place_ - 1]) Remove(tensor);
    for (int tensor : by_last_use_[place_ - 1]) Add(tensor);
  }
}

void CrossingTensors::Add(int tensor) {
  position_[tensor] = static_cast<int>(crossing_.size());
  crossing_.push_back(tensor);
}

void CrossingTensors::Remove(int tensor) {
  const int last = crossing_.back();
  crossing_[position_[tensor]] = last;
  position_[last] = position_[tensor];
  crossing_.pop_back();
}

}  // namespace pipec
