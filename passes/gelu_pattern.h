// Gelu as models spell it: x / 2 * (1 + erf(x / sqrt(2))), or with a tanh. What fuse_gelu.cc looks for.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace pipec {

struct GeluPattern {
  Value* x;
  Node* last;               // its result is Gelu's
  bool tanh;                // the form
  std::vector<Node*> gone;  // the other nodes that it stands for, users before what they use
};

// The Gelu that this Erf or Tanh is a part of, in whatever order its sums and products stand; nullopt if it is none, or
// if anything between x and the result is wanted elsewhere too (or, `outputs`, outside). Nodes are numbered.
std::optional<GeluPattern> FindGelu(Node* bend, const std::vector<Value*>& outputs);

}  // namespace pipec
