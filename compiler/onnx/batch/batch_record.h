// What an import made of each node: the shapes of its operands and results, where their samples lie, and what
// is written into the model as a small constant.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/graph.h"

namespace pipec {

struct ValueRecord {
  Shape shape;  // of an absent operand or result: empty
  int batch_axis = -1;
  std::shared_ptr<const std::string> bytes;  // of a constant in memory
};

struct NodeRecord {
  std::string op;
  std::vector<ValueRecord> inputs, outputs;
};

// Nodes are found by name. Names need not be unique while a model is imported: the n-th of a name is the
// n-th.
class BatchRecord {
 public:
  int64_t samples = 0;  // the batch of that import

  void Add(const Node& node, absl::string_view name);
  // Null if that import had no such node, or another op in its place.
  const NodeRecord* Find(const NodeSpec& spec, int nth) const;

 private:
  absl::flat_hash_map<std::string, std::vector<NodeRecord>> nodes_;
};

}  // namespace pipec
