// Sequences: recurrent nets, attention, reversal.
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/batch_rules.h"

namespace pipec {
namespace {

// (X, W, R, B?, sequence_lens?, initial_h?, initial_c?, P?) -> (Y, Y_h, Y_c). layout 0: X [T,N,I], Y
// [T,D,N,H], Y_h [D,N,H]; layout 1: N first everywhere. Along T a step needs the one before it.
int Recurrent(const Node& node, int k) {
  const bool batch_first = node.attributes.Int("layout") == 1;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const Value* in = node.input(i);
    if (!in || in->batch_axis < 0) continue;
    const bool by_sample = i == 0 || i == 5 || i == 6;
    if (!(i == 4 && in->batch_axis == 0) && !(by_sample && in->batch_axis == (batch_first ? 0 : 1)))
      return -1;
  }
  if (SameBatchAxis(node) < 0) return -1;
  if (batch_first) return 0;
  return k == 0 ? 2 : 1;
}

// (Q, K, V, mask?, past_key?, past_value?, lengths?): N is axis 0 of all; a mask of rank 4 may have it.
int Attention(const Node& node, int) {
  const Value* mask = node.input(3);
  if (mask && mask->batch_axis >= 0 && mask->type.shape.size() < 4) return -1;
  return LeadingBatchAxis(node, {0, 1, 2, 3, 4, 5, 6});
}

// (query, key, value, past_state?, decay?, beta?)
int LinearAttention(const Node& node, int) { return LeadingBatchAxis(node, {0, 1, 2, 3, 4, 5}); }
// (input, weight, bias?, past_state?)
int CausalConvolution(const Node& node, int) { return LeadingBatchAxis(node, {0, 3}); }
// (X, cos, sin, position_ids?): caches of rank 3 are by sample.
int Rotary(const Node& node, int) { return LeadingBatchAxis(node, {0, 1, 2, 3}); }
// (past_cache, update, write_indices?)
int CacheUpdate(const Node& node, int) { return LeadingBatchAxis(node, {0, 1, 2}); }

// (input, sequence_lens): which axis holds the sequences is an attribute, so is the one that is reversed.
int Reversed(const Node& node, int) {
  const int axis = SameBatchAxis(node);
  if (axis == node.attributes.Int("time_axis", 0)) return -1;
  const bool by_sample = SameBatchAxis(node, 1) == 0;
  return by_sample && axis != node.attributes.Int("batch_axis", 1) ? -1 : axis;
}

const BatchRule kRules[] = {
    {"RNN", Recurrent},
    {"GRU", Recurrent},
    {"LSTM", Recurrent},
    {"Attention", Attention},
    {"LinearAttention", LinearAttention},
    {"CausalConvWithState", CausalConvolution},
    {"RotaryEmbedding", Rotary},
    {"TensorScatter", CacheUpdate},
    {"ReverseSequence", Reversed},
};

}  // namespace

absl::Span<const BatchRule> SequenceBatchRules() { return kRules; }

}  // namespace pipec
