#include "compiler/partition/blocks.h"

#include <algorithm>
#include <map>

namespace pipec {
namespace {

void SortUnique(std::vector<int>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Fills `uses` and what blocks produce from `tensors`.
void LinkTensors(Blocks& blocks) {
  blocks.uses.assign(blocks.size(), {});
  for (const BlockTensor& tensor : blocks.tensors) {
    int previous = tensor.producer;
    for (int consumer : tensor.consumers) {
      const bool last = consumer == tensor.consumers.back();
      blocks.uses[consumer].push_back({previous, last ? tensor.producer : -1, tensor.seconds});
      previous = consumer;
    }
    blocks.blocks[tensor.producer].produced_seconds += tensor.seconds;
  }
}

void LinkShared(Blocks& blocks, const std::vector<int>& holders, const HeldBytes& bytes) {
  int previous = -1;
  for (int holder : holders) {
    blocks.shared[holder].push_back({blocks.shared_groups, previous, bytes});
    previous = holder;
  }
  ++blocks.shared_groups;
}

std::vector<int> BlockOfItem(const PartitionProblem& problem) {
  std::vector<int> block_of(problem.items.size());
  for (size_t i = 1; i < problem.items.size(); ++i) {
    block_of[i] = block_of[i - 1] + (problem.items[i].glued_to_previous ? 0 : 1);
  }
  return block_of;
}

}  // namespace

Blocks MakeBlocks(const PartitionProblem& problem) {
  Blocks result;
  const std::vector<int> block_of = BlockOfItem(problem);
  for (size_t i = 0; i < problem.items.size(); ++i) {
    const PartitionItem& item = problem.items[i];
    if (block_of[i] == result.size()) {
      result.blocks.emplace_back();
      result.blocks.back().first_item = static_cast<int>(i);
    }
    Block& block = result.blocks.back();
    block.seconds += item.seconds;
    block.bytes += {item.parameter_bytes, item.weight_bytes, item.activation_bytes};
    for (int k = 0; k < kRemakeKinds; ++k) {
      block.remake.bytes[k] += item.remake[k].bytes;
      block.remake.seconds[k] += item.remake[k].seconds;
      result.can_remake |= item.remake[k].bytes > 0;
    }
    result.total_seconds += item.seconds;
  }
  result.parents.resize(result.size());
  result.shared.resize(result.size());

  std::map<std::vector<int>, double> seconds_of;  // by the blocks of the tensor
  for (const PartitionTensor& tensor : problem.tensors) {
    const int producer = block_of[tensor.producer];
    std::vector<int> members = {producer};
    for (int consumer : tensor.consumers) {
      members.push_back(block_of[consumer]);
      if (tensor.ordered && members.back() != producer) result.parents[members.back()].push_back(producer);
    }
    SortUnique(members);
    if (members.size() > 1) seconds_of[std::move(members)] += tensor.seconds;
  }
  for (const auto& [members, seconds] : seconds_of)
    result.tensors.push_back({members[0], {members.begin() + 1, members.end()}, seconds});
  LinkTensors(result);
  for (const auto& [before, after] : problem.order) {
    if (block_of[before] != block_of[after]) result.parents[block_of[after]].push_back(block_of[before]);
  }
  for (std::vector<int>& parents : result.parents) SortUnique(parents);

  for (const PartitionShared& shared : problem.shared) {
    std::vector<int> holders;
    for (int item : shared.items) holders.push_back(block_of[item]);
    SortUnique(holders);
    LinkShared(result, holders, {shared.bytes, shared.weight_bytes});
  }
  return result;
}

Blocks Reorder(const Blocks& blocks, absl::Span<const int> order) {
  Blocks result;
  std::vector<int> place(blocks.size());
  for (int k = 0; k < blocks.size(); ++k) {
    place[order[k]] = k;
    result.blocks.push_back(blocks.blocks[order[k]]);
    result.blocks.back().produced_seconds = 0;
  }
  const auto places = [&place](absl::Span<const int> old) {
    std::vector<int> moved;
    for (int block : old) moved.push_back(place[block]);
    std::sort(moved.begin(), moved.end());
    return moved;
  };
  for (int k = 0; k < blocks.size(); ++k) result.parents.push_back(places(blocks.parents[order[k]]));
  for (const BlockTensor& tensor : blocks.tensors) {
    std::vector<int> members = {place[tensor.producer]};
    for (int consumer : tensor.consumers) members.push_back(place[consumer]);
    std::sort(members.begin(), members.end());
    result.tensors.push_back({members[0], {members.begin() + 1, members.end()}, tensor.seconds});
  }
  LinkTensors(result);
  result.shared.resize(blocks.size());
  std::vector<std::vector<int>> holders(blocks.shared_groups);
  std::vector<HeldBytes> bytes(blocks.shared_groups);
  for (int block = 0; block < blocks.size(); ++block) {
    for (const SharedUse& use : blocks.shared[block]) {
      holders[use.group].push_back(block);
      bytes[use.group] = use.bytes;
    }
  }
  for (int group = 0; group < blocks.shared_groups; ++group)
    LinkShared(result, places(holders[group]), bytes[group]);
  result.total_seconds = blocks.total_seconds;
  result.can_remake = blocks.can_remake;
  return result;
}

std::vector<std::vector<int>> Children(const Blocks& blocks) {
  std::vector<std::vector<int>> children(blocks.size());
  for (int block = 0; block < blocks.size(); ++block) {
    for (int parent : blocks.parents[block]) children[parent].push_back(block);
  }
  return children;
}

std::vector<int> ByItem(const PartitionProblem& problem, absl::Span<const int> by_block) {
  std::vector<int> by_item = BlockOfItem(problem);
  for (int& entry : by_item) entry = by_block[entry];
  return by_item;
}

}  // namespace pipec
