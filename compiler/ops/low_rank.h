// Weights with a low-rank adaptation beside them (passes/add_lora.cc): the two products with its factors carry
// the attributes low_rank_of, the name of the weight, and transposed, 1 if that is [out, in].
#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace pipec {

inline constexpr char kLowRankOf[] = "low_rank_of";

// What an export adds to `weight`: a b, or its transpose.
struct LowRank {
  const Value* weight = nullptr;
  const Value* a = nullptr;  // [in, rank]
  const Value* b = nullptr;  // [rank, out]
  bool transposed = false;   // the weight is [out, in]
};

// One for each adapted weight, in the order of their first use.
std::vector<LowRank> FindLowRank(const Graph& graph);

}  // namespace pipec
