// Cost rules that several op families share.
#pragma once

#include "compiler/ops/op_info.h"

namespace pipec {

// Bytes of all operands and results, each once.
double BytesOf(const Node& node);

int64_t Elements(const Value* value);

// `kFlops` for each element of result 0.
template <int kFlops>
NodeCost PerOutputElement(const Node& node) {
  return {static_cast<double>(kFlops) * Elements(node.output(0)), BytesOf(node)};
}

// `kFlops` for each element of operand 0.
template <int kFlops>
NodeCost PerInputElement(const Node& node) {
  return {static_cast<double>(kFlops) * Elements(node.input(0)), BytesOf(node)};
}

}  // namespace pipec
