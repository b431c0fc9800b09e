// Where the batch axis goes, by ONNX's meaning of an op: for ops that have no row in the op table, and for
// rows that give no rule.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/ops/op_info.h"

namespace pipec {

struct BatchRule {
  absl::string_view op;  // of ai.onnx
  // The batch axis of output `k` (which is there), given those of the operands; -1 if it has none, or samples
  // mix there.
  int (*axis)(const Node& node, int k);
};

// Of ops that work element by element on operands that are broadcast against each other.
int ElementwiseBatchRule(const Node& node, int k);

// Null if no rule is known.
const BatchRule* FindBatchRule(absl::string_view op);

// The families, put together in batch_rules.cc.
absl::Span<const BatchRule> ProductBatchRules();
absl::Span<const BatchRule> SpatialBatchRules();
absl::Span<const BatchRule> SequenceBatchRules();
absl::Span<const BatchRule> IndexBatchRules();

}  // namespace pipec
