// The last step of a cut: what its objective, the slowest stage, does not know.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/partition/problem.h"

namespace pipec {

// Moves boundaries of `stage_of`, a valid cut by item, in the order of its stages and within one of the items, by a few
// items, alone, with its neighbours' or two of them apart, as long as a step becomes faster and `more` says so.
// `seconds`: of the step of a cut, or infinity if that is not below its second argument; what it is for `stage_of`
// is given, and what it becomes returned.
double MoveForStep(const PartitionProblem& problem, double now,
                   absl::FunctionRef<double(const std::vector<int>&, double)> seconds,
                   absl::FunctionRef<bool()> more, std::vector<int>& stage_of);

}  // namespace pipec
