// The partition problem: cut a graph of items (forward nodes with their backward work) into S stages so that
// the slowest device is as fast as possible. Plain structs; knows no model graph.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace pipec {

// Activations that can be made again for the backward pass instead of being kept.
struct PartitionRemake {
  int64_t bytes = 0;   // per microbatch in flight
  double seconds = 0;  // to make all of them; a part of them takes its part
};
inline constexpr int kRemakeKinds = 3;

struct PartitionItem {
  double seconds = 0;              // compute of the item, forward and backward, for one microbatch
  int64_t parameter_bytes = 0;     // parameters, gradients, optimizer state that live with it
  int64_t activation_bytes = 0;    // kept from F to the backward, per microbatch in flight
  bool glued_to_previous = false;  // in one stage with the item before
  int64_t weight_bytes = 0;        // of parameters that learn, beside parameter_bytes: kept in every weight version
  // Beside activation_bytes, by kind. A device on which not everything fits makes kind 0 again first, then kind 1,
  // and of the last one that it needs only a part.
  std::array<PartitionRemake, kRemakeKinds> remake = {};
};

// A tensor that one item makes and others use. Each stage that holds one of these items, but not all, sends
// or receives it: once, however many of them it holds.
struct PartitionTensor {
  int producer = 0;
  std::vector<int> consumers;  // ascending, all after the producer, at least one
  double seconds = 0;          // of its messages, forward and backward, at each stage that takes part
  // Whether no consumer may lie in a stage before the producer's. Otherwise the tensor only costs: a gradient
  // that travels backwards, say, with the first of its items as `producer`, whichever of them makes it.
  bool ordered = true;
};

// A parameter used by several items: every stage that holds one of them keeps a copy.
struct PartitionShared {
  std::vector<int> items;
  int64_t bytes = 0;
  int64_t weight_bytes = 0;  // as an item's
};

// Items stand in an order that is valid: what comes before another comes first. A solution need not keep it.
struct PartitionProblem {
  std::vector<PartitionItem> items;
  std::vector<PartitionTensor> tensors;
  // {before, after}: the second may not lie in a stage before the first's, beyond what tensors ask.
  std::vector<std::pair<int, int>> order;
  std::vector<PartitionShared> shared;
  int stages = 1;
  // Activations that stage s keeps at once, in microbatches (1f1b: P - s). Empty: 1 each.
  std::vector<int> in_flight;
  // Weight versions that stage s keeps. Empty: 1 each.
  std::vector<int> versions;
  // Stages that share a device: their seconds and bytes add up. Empty: a device for each stage.
  std::vector<int> rank_of_stage;
  // By device: how many times as fast as `seconds` say. Empty: 1 each.
  std::vector<double> speed;
  int64_t memory_limit = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> memory_limits;  // by device, together with memory_limit. Empty: none
  // 0: so many that only the slowest device counts. Otherwise what counts is the time of `microbatches` of
  // them: all stages once, and the slowest device microbatches - 1 times.
  int microbatches = 0;
};

struct PartitionSolution {
  std::vector<int> stage_of;  // by item; S stages, none empty
  double bottleneck = 0;      // seconds of the slowest device, messages counted
  double lower_bound = 0;     // no cut has a faster slowest device
};

}  // namespace pipec
