// What to keep and what to compute again for the backward pass: a multiple-choice knapsack.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace pipec {

struct RecomputeOption {
  double seconds = 0;  // of what is computed again
  int64_t bytes = 0;   // kept for as long as activations are
  int64_t remade = 0;  // bytes of what is computed again, while it is needed
};

// A part of what a device computes, with the ways to treat it. Parts are computed again one after the other.
using RecomputeUnit = std::vector<RecomputeOption>;

// An option for each unit: the least sum of seconds such that the sum of bytes and the largest of what is remade are
// within `budget`; among these the fewest bytes. nullopt if nothing fits. Exact as long as no more than some thousand
// pairs of seconds and bytes are worth a thought at any unit (equal units make few); beyond, a good choice that fits.
// Time: units x options x those pairs, for each distinct amount remade.
std::optional<std::vector<int>> ChooseRecompute(absl::Span<const RecomputeUnit> units, int64_t budget);

// The least budget for which there is a choice.
int64_t LeastRecomputeBudget(absl::Span<const RecomputeUnit> units);

}  // namespace pipec
