// The partition problem: cut a sequence of items (forward nodes with their backward work) into S consecutive
// stages so that the slowest stage is as fast as possible. Plain structs; knows no graph.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"

namespace pipec {

struct PartitionItem {
  double seconds = 0;              // compute of the item, forward and backward, for one microbatch
  int64_t parameter_bytes = 0;     // parameters, gradients, optimizer state that live with it
  int64_t activation_bytes = 0;    // kept from F to the backward, per microbatch in flight
  bool glued_to_previous = false;  // no cut between this item and the one before
};

// A tensor that goes from one item to later ones; it becomes a message if they lie in other stages.
struct PartitionTensor {
  int producer = 0;            // item; consumers are later items
  std::vector<int> consumers;  // ascending, at least one
  double seconds = 0;  // time of its messages, forward and backward, each counted at sender and at receiver
};

// A parameter used by several items: every stage that holds one of them keeps a copy.
struct PartitionShared {
  std::vector<int> items;
  int64_t bytes = 0;
};

struct PartitionProblem {
  std::vector<PartitionItem> items;
  std::vector<PartitionTensor> tensors;
  std::vector<PartitionShared> shared;
  int stages = 1;
  // Activations that stage s keeps at once, in microbatches (1f1b: P - s). Empty: 1 each.
  std::vector<int> in_flight;
  // Stages that share a device: their bytes add up. Empty: a device for each stage.
  std::vector<int> rank_of_stage;
  int64_t memory_limit = std::numeric_limits<int64_t>::max();
};

struct PartitionSolution {
  std::vector<int> first_item;  // S entries, first_item[0] = 0, strictly ascending
  double bottleneck = 0;        // seconds of the slowest stage, messages counted
  double lower_bound = 0;       // no cut, in any order that keeps these items whole, is faster
};

}  // namespace pipec
