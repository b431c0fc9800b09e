// Sums and means over the samples of a batch, and the numbers that such a sum is divided by: exporters fold
// the batch into them (kl_div's batchmean, a sum over shape[0], the N-1 of a variance).
#pragma once

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace pipec {

class ReducedSamples {
 public:
  // Looks at a new node whose results have their batch axes; an import for `samples`.
  void Place(const Node& node, int64_t samples);

  // For operand `i` of a Div or Mul, a number written into the model for a batch of `exported`: the number for
  // `samples` where it counts what was summed up, exported x the entries of a sample; nullopt where it has
  // nothing to do with the batch. InvalidArgument where it may have.
  absl::StatusOr<std::optional<double>> Rescaled(const NodeSpec& spec, int i, int64_t exported,
                                                 int64_t samples);

 private:
  // Places the nodes that made `value`, those that were not placed.
  void Look(const Value& value, int64_t samples, int depth);

  struct Reduced {
    int64_t entries;  // of one sample, in each element
    bool mean;
  };
  absl::flat_hash_map<const Value*, Reduced> reduced_;
};

// Whether the op reduces by what it is defined to be, not by the numbers of the entries.
bool ReducesAll(absl::string_view op, absl::string_view domain);

// A constant like `like`, with one element of the value `number`; null if its type has none or is 16 bits wide.
Value* AddNumberLike(Graph& graph, const Value& like, double number);

}  // namespace pipec
