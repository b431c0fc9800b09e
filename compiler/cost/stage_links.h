// What goes from stage to stage for every microbatch.
#pragma once

#include <vector>

#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"

namespace pipec {

// Pairs of stages with messages, with the modelled time of one on the wire: activations, and gradients if `backward`.
std::vector<StageLink> StageLinks(const Module& module, const Cluster& cluster, bool backward);

}  // namespace pipec
