#include "compiler/partition/segment_jump.h"

#include <algorithm>

namespace pipec {

SegmentJump::SegmentJump(const Blocks& blocks)
    : blocks_(blocks), crossing_(blocks), shared_(blocks.shared_groups) {
  const int n = blocks.size();
  compute_.resize(n + 1, 0);
  crossing_seconds_.resize(n + 1, 0);
  bytes_.resize(n + 1);
  remake_.resize(n + 1);
  for (int i = 0; i < n; ++i) {
    const Block& block = blocks.blocks[i];
    compute_[i + 1] = compute_[i] + block.seconds;
    crossing_seconds_[i + 1] = crossing_seconds_[i] + block.produced_seconds;
    bytes_[i + 1] = bytes_[i];
    bytes_[i + 1] += block.bytes;
    remake_[i + 1] = remake_[i];
    remake_[i + 1] += block.remake;
    for (const TensorUse& use : blocks.uses[i]) {
      if (use.producer >= 0) crossing_seconds_[i + 1] -= use.seconds;
    }
    for (const SharedUse& use : blocks.shared[i]) {
      shared_[use.group].holders.push_back(i);
      shared_[use.group].bytes = use.bytes;
    }
  }
}

Segment SegmentJump::Make(int begin, int end) {
  const int blocks = end - begin;
  if (blocks > static_cast<int>(shared_.size())) {
    crossing_.MoveTo(begin);
    if (blocks > static_cast<int>(shared_.size() + crossing_.tensors().size())) return Jump(begin, end);
  }
  Segment segment(blocks_, begin);
  while (segment.end() < end) segment.Grow();
  return segment;
}

Segment SegmentJump::Jump(int begin, int end) const {
  long double messages = crossing_seconds_[end];  // sent, but for those made in front of `begin`
  for (int t : crossing_.tensors()) {
    const BlockTensor& tensor = blocks_.tensors[t];
    if (tensor.consumers.back() >= end) messages -= tensor.seconds;
    const int next = *std::lower_bound(tensor.consumers.begin(), tensor.consumers.end(), begin);
    if (next < end) messages += tensor.seconds;  // received
  }
  HeldBytes bytes = bytes_[end];
  bytes -= bytes_[begin];
  Remake remake = remake_[end];
  remake -= remake_[begin];
  for (const Shared& shared : shared_) {
    const auto next = std::lower_bound(shared.holders.begin(), shared.holders.end(), begin);
    if (next != shared.holders.end() && *next < end) bytes += shared.bytes;
  }
  return Segment(blocks_, begin, end,
                 {static_cast<double>(compute_[end] - compute_[begin]), static_cast<double>(messages), bytes, remake});
}

}  // namespace pipec
