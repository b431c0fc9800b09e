// What the user hears of a cut: how far his own is from the solver's, and what equal shares would cost.
#pragma once

#include <string>
#include <vector>

#include "compiler/partition/problem.h"

namespace pipec {

// How many times as long the slowest rank of the user's cut takes as with the solver's: both by rank.
std::string CompareOwnCut(const std::vector<double>& own, const std::vector<double>& best);

// Why a cut was taken whose slowest rank takes longer than another's: its step takes `step` seconds, the other's
// `other`. Empty if neither differs by much.
std::string CompareStep(const std::vector<double>& loads, const std::vector<double>& other_loads, double step,
                        double other);

// The same of EqualCut. Empty if that is no slower.
std::string CompareEqualCut(const std::vector<double>& equal, const std::vector<double>& best);

// Stages of equally many items, as far as items that stay together allow: by item.
std::vector<int> EqualCut(const PartitionProblem& problem);

}  // namespace pipec
