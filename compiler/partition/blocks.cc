#include "compiler/partition/blocks.h"

#include <algorithm>

namespace pipec {
namespace {

void SortUnique(std::vector<int>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

Blocks MakeBlocks(const PartitionProblem& problem) {
  Blocks result;
  std::vector<int> block_of(problem.items.size());
  for (size_t i = 0; i < problem.items.size(); ++i) {
    const PartitionItem& item = problem.items[i];
    if (i == 0 || !item.glued_to_previous) {
      result.blocks.emplace_back();
      result.blocks.back().first_item = i;
    }
    block_of[i] = result.size() - 1;
    Block& block = result.blocks.back();
    block.seconds += item.seconds;
    block.parameter_bytes += item.parameter_bytes;
    block.activation_bytes += item.activation_bytes;
    result.total_seconds += item.seconds;
  }
  result.uses.resize(result.size());
  result.shared.resize(result.size());

  for (const PartitionTensor& tensor : problem.tensors) {
    BlockTensor in_blocks{block_of[tensor.producer], {}, tensor.seconds};
    for (int consumer : tensor.consumers) {
      if (block_of[consumer] != in_blocks.producer) in_blocks.consumers.push_back(block_of[consumer]);
    }
    if (in_blocks.consumers.empty()) continue;
    SortUnique(in_blocks.consumers);
    int previous = in_blocks.producer;
    for (int consumer : in_blocks.consumers) {
      const bool last = consumer == in_blocks.consumers.back();
      result.uses[consumer].push_back({previous, last ? in_blocks.producer : -1, tensor.seconds});
      previous = consumer;
    }
    result.blocks[in_blocks.producer].produced_seconds += tensor.seconds;
    result.tensors.push_back(std::move(in_blocks));
  }

  for (const PartitionShared& shared : problem.shared) {
    std::vector<int> holders;
    for (int item : shared.items) holders.push_back(block_of[item]);
    SortUnique(holders);
    int previous = -1;
    for (int holder : holders) {
      result.shared[holder].push_back({result.shared_groups, previous, shared.bytes});
      previous = holder;
    }
    ++result.shared_groups;
  }
  return result;
}

}  // namespace pipec
