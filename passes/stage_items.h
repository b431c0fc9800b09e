// The forward graph as the partitioner sees it: a sequence of items, one forward node each, with the backward
// work that lives with it.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"
#include "compiler/partition/problem.h"

namespace pipec {

struct StageItems {
  std::vector<Node*> nodes;  // forward nodes in execution order: item k is nodes[k]
  // By Node::index: forward nodes, and backward nodes through their origin; -1 for the others.
  std::vector<int> item_of;
  std::vector<StageTimes> times;  // seconds of each item
  // Items, tensors and shared parameters; stages, in_flight, rank_of_stage and memory_limit are left to the
  // caller.
  PartitionProblem problem;
};

// No cut between: a node that depends on parameters and constants only, and its consumer; a view and what it
// views; the accumulators of the loss and what they add up. Internal if a backward node has no forward node
// as origin. Node::index must be valid.
absl::StatusOr<StageItems> BuildStageItems(const Module& module, const Cluster& cluster);

// Nodes that depend on no input of the model: true at Node::index (which must be valid).
std::vector<bool> NodesWithoutData(const Graph& graph);

}  // namespace pipec
