// Graphs with costs from public files, as partition problems.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/partition/problem.h"

namespace pipec::bench {

struct CostNode {
  std::string id;
  double time = 0;   // milliseconds or whatever the file counts in
  double bytes = 0;  // that stay where the node is
  double send = 0;   // time of its output, at each stage that sends or receives it
  bool backward = false;
  int together = -1;  // nodes of the same number share a stage; -1: none
};

struct CostEdge {
  int from = 0, to = 0;  // nodes
};

struct CostGraph {
  std::vector<CostNode> nodes;
  std::vector<CostEdge> edges;
  int stages = 1;                // that the file names
  double bytes_of_stage = 1e18;  // likewise
};

// msr-fiddle/dnn-partitioning: JSON with nodes, edges, maxFPGAs, maxSizePerFPGA.
absl::StatusOr<CostGraph> ReadDnnPartitioning(const std::string& path);

// msr-fiddle/pipedream: a line a node, forward and backward together; a tensor and its gradient take
// 2 * bytes / `bandwidth` (bytes a second).
absl::StatusOr<CostGraph> ReadPipedream(const std::string& path, double bandwidth);

// The problem, one item for the nodes that must share a stage: those that belong together, and those that lead
// to each other. Only forward nodes have an order; a backward node that belongs to none has that of its backward
// neighbours, turned around.
struct GraphProblem {
  PartitionProblem problem;
  std::vector<int> item_of;  // by node
};
GraphProblem MakeProblem(const CostGraph& graph, int stages);

// By the definition, node by node: what the slowest stage takes.
double SlowestStage(const CostGraph& graph, const std::vector<int>& stage_of);

}  // namespace pipec::bench
