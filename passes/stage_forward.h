// The forward nodes of one stage, as recompute sees them: who needs which result, until where.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/module.h"
#include "compiler/memory/segments.h"

namespace pipec {

class StageForward {
 public:
  // The stage's forward nodes, messages apart, and its backward nodes, in execution order.
  StageForward(std::vector<Node*> forward, std::vector<Node*> backward);

  const std::vector<Node*>& nodes() const { return forward_; }
  const std::vector<Node*>& backward() const { return backward_; }
  // Where among the forward nodes a node stands that uses one of their values: itself, or the forward node to which it
  // belongs. -1: in another stage.
  int PlaceOf(const Node& user) const;
  // The last place that uses a value made at place `last`, views of it included.
  int LastPlace(const Value& value, int last) const;

  // What compiler/memory cuts into segments.
  SegmentProblem Segments(int in_flight) const;
  // Places of the nodes that have to run again, ascending, so that no backward node that belongs to places [begin, end)
  // reads what these made, but for the results of places that are set in `kept`.
  std::vector<int> ToRunAgain(int begin, int end, const std::vector<char>& kept) const;
  // Backward nodes, from the first on that reads such a result: those for which the nodes run again.
  std::vector<Node*> UsersOf(int begin, int end, const std::vector<char>& kept) const;

 private:
  // Whether a value is made at places [begin, end), and not kept.
  bool IsRemade(const Value* value, int begin, int end, const std::vector<char>& kept) const;

  const std::vector<Node*> forward_, backward_;
  absl::flat_hash_map<const Node*, int> place_;
};

}  // namespace pipec
