// What a long segment costs, without growing to it block by block.
#pragma once

#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/crossing_tensors.h"

namespace pipec {

class SegmentJump {
 public:
  // `blocks` must outlive this.
  explicit SegmentJump(const Blocks& blocks);

  // Blocks [begin, end), ready to grow. Time: by jump, the tensors that cross `begin` and the shared
  // parameters, with the way from the last `begin`; growing, if that is less.
  Segment Make(int begin, int end);

 private:
  Segment Jump(int begin, int end) const;

  const Blocks& blocks_;
  CrossingTensors crossing_;
  // By place: sums of all blocks in front of it, and of the tensors that cross it. Differences of sums over
  // all blocks must be as good as a sum over few: more digits.
  std::vector<long double> compute_, crossing_seconds_;
  std::vector<HeldBytes> bytes_;
  std::vector<Remake> remake_;
  struct Shared {
    std::vector<int> holders;  // ascending
    HeldBytes bytes;
  };
  std::vector<Shared> shared_;  // by group
};

}  // namespace pipec
