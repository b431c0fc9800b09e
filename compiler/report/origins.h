// Where the times of a plan come from (compiler/cost/origin.h), and how that is said.
#pragma once

#include <string>

#include "compiler/cost/cluster.h"
#include "compiler/cost/node_cost.h"
#include "compiler/ir/module.h"

namespace pipec {

// Seconds by where they come from.
struct Origins {
  double modelled = 0, fitted = 0, measured = 0;
};

// Adds what a node takes, `times` as often.
void Add(const NodeTime& time, int times, Origins& origins);
// Of the seconds of all nodes of a step, the update included.
Origins OriginsOf(const Module& module, const Cluster& cluster);

// What costs are: "modelled", "fitted", "measured", or "93 % measured, 7 % fitted" of what is of several kinds.
std::string Name(const Origins& origins);
// What a figure is that a simulation made of such costs: "modelled", "from measured costs", "from costs 93 %
// measured, 7 % fitted". Nothing simulated is measured.
std::string NameOfSimulated(const Origins& origins);

}  // namespace pipec
