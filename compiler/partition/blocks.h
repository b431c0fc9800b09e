// The problem with every glued group as one block: what the solvers and the lower bound work on.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compiler/partition/problem.h"

namespace pipec {

struct Block {
  int first_item = 0;
  double seconds = 0;
  int64_t parameter_bytes = 0;
  int64_t activation_bytes = 0;
  double produced_seconds = 0;  // messages of the tensors of which this block is the first
};

// A tensor of several distinct blocks. A stage that holds some of them, but not all, pays its seconds.
struct BlockTensor {
  int producer = 0;            // the first of its blocks
  std::vector<int> consumers;  // the others, ascending, not empty
  double seconds = 0;

  int blocks() const { return 1 + static_cast<int>(consumers.size()); }
};

// A block as consumer of a tensor.
struct TensorUse {
  int previous = 0;   // the block before this one that makes or uses the tensor
  int producer = -1;  // the block that makes it, if this is the last use; otherwise -1
  double seconds = 0;
};

// A block as holder of a shared parameter.
struct SharedUse {
  int group = 0;      // which shared parameter
  int previous = -1;  // the block before this one that holds it
  int64_t bytes = 0;
};

// Blocks in one valid order. Tensors of the same blocks are one.
struct Blocks {
  std::vector<Block> blocks;
  std::vector<BlockTensor> tensors;
  std::vector<std::vector<int>>
      parents;  // by block: who must not lie in a later stage; ascending, all before it
  std::vector<std::vector<TensorUse>> uses;    // by block
  std::vector<std::vector<SharedUse>> shared;  // by block
  int shared_groups = 0;
  double total_seconds = 0;

  int size() const { return static_cast<int>(blocks.size()); }
};

Blocks MakeBlocks(const PartitionProblem& problem);

// The same blocks in another valid order: block k of the result is block order[k].
Blocks Reorder(const Blocks& blocks, absl::Span<const int> order);

// The other direction of `parents`, ascending.
std::vector<std::vector<int>> Children(const Blocks& blocks);

// By item of the problem, from a number by block: the stage, say.
std::vector<int> ByItem(const PartitionProblem& problem, absl::Span<const int> by_block);

// What a stage made of blocks [begin, end) costs, kept up to date while it grows at its end.
class Segment {
 public:
  Segment(const Blocks& blocks, int begin) : Segment(blocks, begin, begin, 0, 0, 0, 0) {}
  // Of known costs; `messages`: seconds of what it receives and sends.
  Segment(const Blocks& blocks, int begin, int end, double compute, double messages, int64_t parameter_bytes,
          int64_t activation_bytes)
      : blocks_(blocks),
        begin_(begin),
        end_(end),
        compute_(compute),
        messages_(messages),
        parameter_bytes_(parameter_bytes),
        activation_bytes_(activation_bytes) {}

  int end() const { return end_; }
  double compute() const { return compute_; }
  double messages() const { return messages_; }
  double seconds() const { return compute_ + messages_; }
  int64_t parameter_bytes() const { return parameter_bytes_; }
  int64_t activation_bytes() const { return activation_bytes_; }

  void Grow() {
    const Block& block = blocks_.blocks[end_];
    compute_ += block.seconds;
    parameter_bytes_ += block.parameter_bytes;
    activation_bytes_ += block.activation_bytes;
    messages_ += block.produced_seconds;
    for (const TensorUse& use : blocks_.uses[end_]) {
      if (use.previous < begin_) messages_ += use.seconds;  // received, for the first time
      if (use.producer >= begin_)
        messages_ -= use.seconds;  // made here and used to the end: not sent after all
    }
    for (const SharedUse& use : blocks_.shared[end_]) {
      if (use.previous < begin_) parameter_bytes_ += use.bytes;
    }
    ++end_;
  }

 private:
  const Blocks& blocks_;
  const int begin_;
  int end_;
  double compute_, messages_;
  int64_t parameter_bytes_, activation_bytes_;
};

}  // namespace pipec
