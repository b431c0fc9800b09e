// Values whose size depends on data: how many of their entries along one axis there are is known to the run
// only. They have room for the most that there can be, and another value counts.
//
//   y = NonZero(x)      ->   y, n = ai.pipec::NonZero(x)    y: int64 [rank, elements of x]; its first n
//   columns z = Transpose(y)    ->   z = Transpose(y)               the first n rows
//
// The count goes with the value through ops that treat entries along the axis one by one; an op for which
// those beyond the count would matter is refused. In infer mode only.
#pragma once

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace pipec {

struct Counted {
  int axis;
  Value* count;        // int64 []
  bool zeros = false;  // entries beyond the count are 0; else anything
};

class CountedAxes {
 public:
  // Null if the sizes of `value` are what its type says.
  const Counted* Find(const Value* value) const;
  void Set(const Value* value, const Counted& counted) { counted_.insert_or_assign(value, counted); }
  // The first such operand, or null.
  const Counted* First(absl::Span<Value* const> operands) const;

  // What is counted of the results of a node with operands of which one is at least; `spec.outputs` has their
  // types. Unimplemented if the node would look at entries beyond the count.
  absl::StatusOr<std::vector<std::optional<Counted>>> OfResults(const NodeSpec& spec) const;

  // Unimplemented, naming the first such operand.
  absl::Status Refusal(const NodeSpec& spec) const;

  // Operand `k` of a node reads others' entries by number: those beyond the count must be numbers that exist.
  static bool IsIndex(const NodeSpec& spec, int k);

 private:
  absl::flat_hash_map<const Value*, Counted> counted_;
};

// An op of ONNX whose results have as many entries as the data say. Its helper op (compiler/ops/README.md)
// has one more result, the count.
struct SizedByData {
  absl::string_view op;
  int results;
  // Along which axis result `k` is counted; -1: along none.
  int (*axis)(const NodeSpec& spec, int k);
};

// Null if `spec` is no such op.
const SizedByData* FindSizedByData(const NodeSpec& spec);

}  // namespace pipec
