// Times of nodes that no profile holds, from those that it holds: other batches, other sequences, other layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/cost/non_negative_fit.h"
#include "compiler/ops/op_info.h"

namespace pipec {

struct MeasuredNode {
  std::string key;  // CostKey
  NodeCost cost;
  double seconds = 0;  // of a run
};

// A class of nodes, the op with the element types of its operands and results, has the law
//   seconds = a bytes + b flops + c,   none of them negative,
// fitted to what was measured of it. What that leaves open (few nodes, all alike, or flops and bytes that grow
// together) the law fitted to all that was measured decides, scaled to the class; of a class without a node it is
// the law.
//
// The law says how time grows; where it stands the measured node that is most alike says (of the class and of the same
// ranks; dimensions and attributes compared): its time, times the law here over the law there. So the nodes of a
// layer that was measured at another batch keep what makes that layer faster or slower than the law. Without such a
// node the law stands where the class's nodes stand on average.
class FittedCosts {
 public:
  FittedCosts() = default;
  // Nodes whose time is 0 are left out: the clock has not seen them.
  explicit FittedCosts(absl::Span<const MeasuredNode> nodes);

  // Seconds of a run of the node with this key and cost; nothing if nothing was measured.
  std::optional<double> Seconds(absl::string_view key, const NodeCost& cost) const;

 private:
  struct Row {
    std::string attributes, ranks;  // CostKeyParts
    std::vector<double> log_dims;
    NodeCost cost;
    double seconds = 0;
  };
  struct OpClass {
    std::vector<Row> rows;
    FitTerms law = {};
    double ratio = 1;  // measured over the law, geometric mean
  };

  absl::flat_hash_map<std::string, OpClass> classes_;
  FitTerms law_of_all_ = {};
};

}  // namespace pipec
