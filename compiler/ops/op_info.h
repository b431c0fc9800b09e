// The op table: one row per op the compiler knows more about than ONNX's schema says.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/ir/graph.h"

namespace pipec {

struct NodeCost {
  double flops = 0;
  double bytes = 0;  // read and written
};

enum class Alias : uint8_t {
  kNone,
  kInPlace,    // output 0 may lie where input `alias_input` lies if that dies here and has the same size
  kView,       // output 0 is input 0's memory under another shape: no instruction at all
  kSameMemory  // every output must lie where its AliasInput lies: accumulators, parameters, optimizer state
};

struct OpInfo {
  absl::string_view op;
  absl::string_view domain;
  // Null: no flops, every operand read once and every result written once.
  NodeCost (*cost)(const Node& node) = nullptr;
  // The batch axis of output 0 given the batch axes of the inputs (Value::batch_axis); -1: it has none, or
  // samples mix there. Null: element-wise with broadcasting.
  int (*batch_axis)(const Node& node) = nullptr;
  Alias alias = Alias::kNone;
  int alias_input = 0;
  // Output types, for helper ops only. `spec.outputs.size()` is how many are asked for.
  absl::StatusOr<std::vector<TensorType>> (*infer)(const NodeSpec& spec) = nullptr;
};

// Null if there is no row: then the op costs its bytes, has no batch axis rule and no alias.
const OpInfo* FindOp(absl::string_view op, absl::string_view domain);
absl::Span<const OpInfo> AllOps();

NodeCost CostOf(const Node& node);
Alias AliasOf(const Node& node);
// The operand whose memory output `k` of a node with an alias takes (kView, kInPlace and kSameMemory). Optimizer ops
// are (p, g, states..., scale) -> (p', states'...): the gradient has no result, so output k > 0 belongs to operand
// k + 1.
int AliasInput(const Node& node, int k);

// Whether kernels of the op, on every device, add to sums over microbatches (compiler/ir/sums.h):
// runtime/device/ops.def.
bool CanAccumulate(absl::string_view op, absl::string_view domain);

// The batch axis of output `k`: the row's rule for output 0; the same axis for other outputs that have it; -1
// if no rule is known (batch_rules.h). Along the axis samples lie one after the other, each with shape[axis] / samples
// entries: 1 unless a Reshape merged the axis with the one behind it.
int BatchAxisOf(const Node& node, int k = 0);

// Writes BatchAxisOf into the results of `node`, -1 where the axis does not hold equally many entries of every
// sample. Whether anything changed.
bool SetBatchAxes(Node& node);

// Whether the op works element by element on operands that are broadcast against each other.
bool IsBroadcast(absl::string_view op, absl::string_view domain);

// Whether a device has a kernel for this op: runtime/device/ops.def.
bool HasKernel(absl::string_view device, absl::string_view op, absl::string_view domain);

}  // namespace pipec
