// The problem with every glued group as one block: what the solvers and the lower bound work on.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compiler/partition/problem.h"

namespace pipec {

// Bytes that stay where blocks are.
struct HeldBytes {
  int64_t parameters = 0;   // once
  int64_t weights = 0;      // for each weight version that the stage keeps
  int64_t activations = 0;  // for each microbatch in flight

  HeldBytes& operator+=(const HeldBytes& other) {
    parameters += other.parameters;
    weights += other.weights;
    activations += other.activations;
    return *this;
  }
  HeldBytes& operator-=(const HeldBytes& other) {
    parameters -= other.parameters;
    weights -= other.weights;
    activations -= other.activations;
    return *this;
  }
};

// Beside them, activations that can be made again, by kind.
struct Remake {
  std::array<int64_t, kRemakeKinds> bytes = {};  // for each microbatch in flight
  std::array<double, kRemakeKinds> seconds = {};

  Remake& operator+=(const Remake& other) {
    for (int k = 0; k < kRemakeKinds; ++k) bytes[k] += other.bytes[k], seconds[k] += other.seconds[k];
    return *this;
  }
  Remake& operator-=(const Remake& other) {
    for (int k = 0; k < kRemakeKinds; ++k) bytes[k] -= other.bytes[k], seconds[k] -= other.seconds[k];
    return *this;
  }
};

struct Block {
  int first_item = 0;
  double seconds = 0;
  HeldBytes bytes;
  Remake remake;
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
  HeldBytes bytes;
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
  bool can_remake = false;  // something can be made again

  int size() const { return static_cast<int>(blocks.size()); }
};

Blocks MakeBlocks(const PartitionProblem& problem);

// The same blocks in another valid order: block k of the result is block order[k].
Blocks Reorder(const Blocks& blocks, absl::Span<const int> order);

// The other direction of `parents`, ascending.
std::vector<std::vector<int>> Children(const Blocks& blocks);

// By item of the problem, from a number by block: the stage, say.
std::vector<int> ByItem(const PartitionProblem& problem, absl::Span<const int> by_block);

// What a stage costs wherever it lies.
struct StageCost {
  double compute = 0, messages = 0;  // seconds
  HeldBytes bytes;
  Remake remake;
};

// The cost of a stage made of blocks [begin, end), kept up to date while it grows at its end.
class Segment {
 public:
  Segment(const Blocks& blocks, int begin) : Segment(blocks, begin, begin, {}) {}
  // Of known cost.
  Segment(const Blocks& blocks, int begin, int end, const StageCost& cost)
      : blocks_(blocks), begin_(begin), end_(end), cost_(cost) {}

  int end() const { return end_; }
  const StageCost& cost() const { return cost_; }

  void Grow() {
    const Block& block = blocks_.blocks[end_];
    cost_.compute += block.seconds;
    cost_.bytes += block.bytes;
    if (blocks_.can_remake) cost_.remake += block.remake;
    cost_.messages += block.produced_seconds;
    for (const TensorUse& use : blocks_.uses[end_]) {
      if (use.previous < begin_) cost_.messages += use.seconds;  // received, for the first time
      if (use.producer >= begin_)
        cost_.messages -= use.seconds;  // made here and used to the end: not sent after all
    }
    for (const SharedUse& use : blocks_.shared[end_]) {
      if (use.previous < begin_) cost_.bytes += use.bytes;
    }
    ++end_;
  }

 private:
  const Blocks& blocks_;
  const int begin_;
  int end_;
  StageCost cost_;
};

}  // namespace pipec
