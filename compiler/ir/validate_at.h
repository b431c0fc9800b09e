// Where each rank validates the step before (compiler/schedule/late_validation.h): an attribute of its
// GradientScale, whose norms these are. Level scheduled.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/module.h"

namespace pipec {

// By rank, a place in its training list; empty: updates wait for the norms of all ranks.
std::vector<int> ValidateAt(const Module& module);
void SetValidateAt(Module& module, absl::Span<const int> places);

// What a GradientScale says; -1: nothing. A plan has it as a field of the rank.
inline constexpr char kValidateAt[] = "validate_at";

}  // namespace pipec
