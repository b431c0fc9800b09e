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
  std::vector<int> kind_of_rank;                  // devices of one name are of one kind
  std::vector<std::vector<StageTimes>> times_on;  // seconds of each item, by kind of device
  std::vector<std::vector<double>> updates_on;    // likewise, of its update; empty: not counted
  // Of each item on a device of speed 1, as the problem has them: the mean over ranks of time x speed.
  std::vector<StageTimes> times;
  std::vector<int64_t> tensor_bytes;              // by tensor of the problem
  std::vector<int> sender;                        // likewise: the item that makes it
  // Items, tensors, shared parameters and speeds; stages, in_flight, rank_of_stage and memory_limit are left to
  // the caller. The partitioner knows a device by one speed, that of all items together, and one link: the fastest
  // there is.
  PartitionProblem problem;

  double SecondsOn(int kind, int item) const;
};

// No cut between: a node that depends on parameters and constants only, and its consumer; a view and what it
// views; the accumulators of the loss and what they add up. Internal if a backward node has no forward node
// as origin. Node::index must be valid.
// The cluster has a device for each rank.
absl::StatusOr<StageItems> BuildStageItems(const Module& module, const Cluster& cluster);

// Counts updates with the items, shared out over the microbatches of a step: where a step does not end before the next
// begins, a rank updates while others go on.
void AddUpdates(const Module& module, const Cluster& cluster, int microbatches, StageItems& items);

// Nodes that depend on no input of the model: true at Node::index (which must be valid).
std::vector<bool> NodesWithoutData(const Graph& graph);

}  // namespace pipec
