// The tensors that cross a place: made in front of it, used behind it.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "compiler/partition/blocks.h"

namespace pipec {

// Kept for one place at a time. To move costs the tensors that begin or end on the way.
class CrossingTensors {
 public:
  // `blocks` must outlive this.
  explicit CrossingTensors(const Blocks& blocks);

  // The place in front of block `place`; at first 0.
  void MoveTo(int place);
  int place() const { return place_; }
  // Indices into blocks.tensors, in no order.
  absl::Span<const int> tensors() const { return crossing_; }

 private:
  void Add(int tensor);
  void Remove(int tensor);

  std::vector<std::vector<int>> by_producer_, by_last_use_;  // by block
  std::vector<int> crossing_;
  std::vector<int> position_;  // by tensor: where in crossing_
  int place_ = 0;
};

}  // namespace pipec
