// What the user hears of a cut: how far his own is from the solver's, and what equal shares would cost.
#pragma once

#include <string>
#include <vector>

#include "compiler/partition/problem.h"

namespace pipec {

// How many times as long as `best`'s the slowest device of the user's cut takes; both by item.
std::string CompareOwnCut(const PartitionProblem& problem, const std::vector<int>& own,
                          const std::vector<int>& best);

// The same for stages of equally many items, as far as items that stay together allow. Empty if that is no slower.
std::string CompareEqualCut(const PartitionProblem& problem, const std::vector<int>& best);

}  // namespace pipec
