// An order of nodes that keeps the most bytes live at once low.
#pragma once

#include <cstdint>
#include <vector>

namespace pipec {

// What one node makes and others use, and nobody else knows of: live from its maker to the last of its users.
struct OrderedTensor {
  int maker = 0;           // node
  std::vector<int> users;  // nodes; none: live during its maker only
  int64_t bytes = 0;
  // A tensor in whose bytes it lies if its maker is the last that uses that one; -1: none.
  int in_place_of = -1;
};

// Nodes 0, 1, ..., numbered in an order that is valid.
struct OrderProblem {
  int nodes = 0;
  std::vector<std::vector<int>> after;  // by node: those that have to come before it
  std::vector<OrderedTensor> tensors;
};

// The largest sum of live bytes.
int64_t PeakOfOrder(const OrderProblem& problem, const std::vector<int>& order);

// The best of: the nodes as numbered; list scheduling from the front, and from the end backwards, each by least bytes
// live after a step and by least bytes live during it, with a look at the steps that one makes possible. The numbered
// order if none is better. Time: nodes x ready nodes.
std::vector<int> LowPeakOrder(const OrderProblem& problem);

}  // namespace pipec
