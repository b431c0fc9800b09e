// Attention as models spell it: products, scale, mask, softmax. What fuse_attention.cc looks for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/graph.h"

namespace pipec {

struct AttentionPattern {
  Node* product;                // of the weights and V, whose result is the attention's
  Value *query, *keys, *value;  // keys: [..., depth, columns], as the first product reads them
  double scale = 1;
  bool causal = false;
  bool zero_rows = false;   // weights that are NaN are 0
  Value* mask = nullptr;    // floats that are added, or bools
  double fill = 0;          // what stands where bools are false
  bool inverted = false;    // where they are true
  std::vector<Node*> gone;  // nodes that the fused one stands for, users before what they use
};

// What is hidden by constant masks, which the layers of a model share: looked at once. By bytes, what stands where
// bools are false, and whether they are inverted.
using KnownMasks =
    absl::flat_hash_map<std::tuple<std::shared_ptr<const std::string>, double, bool>, std::optional<double>>;

// The attention whose weights this Softmax makes; nullopt if it is none, if its weights or anything on the way to them
// are wanted elsewhere too (or, `outputs`, outside), or are dropped at random.
std::optional<AttentionPattern> FindAttention(Node* softmax, const std::vector<Value*>& outputs,
                                              KnownMasks& known);

}  // namespace pipec
