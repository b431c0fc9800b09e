// Graphs with costs drawn from a seed, in shapes that networks have: few ideals to more than anybody enumerates.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/partition_graph.h"

namespace pipec::bench {

struct NamedGraph {
  std::string name;
  CostGraph graph;
};

// Layers of equally many nodes, each used by some of the next layer; modules of branches that are put together, as
// Inception has; cells that use the two cells before, as NASNet has; towers that meet at the end only; and nodes
// that use any of the last few. Node times spread over a factor of ten, messages take a tenth of them. The same at
// each call.
std::vector<NamedGraph> WideGraphs();

}  // namespace pipec::bench
