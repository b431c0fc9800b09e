// The nodes of each rank, sorted into the programs that its actions run.
#pragma once

#include <vector>

#include "compiler/ir/module.h"

namespace pipec {

struct RankPrograms {
  // All F, then all B, I and W, stage by stage; in training NORM, then UPDATE of every stage that has one.
  // Needs the schedule: it says whether a stage runs B or I and W.
  std::vector<Program> programs;
  // Everything that lives on the rank in execution order, views and messages (of the receiving stage)
  // included.
  std::vector<Node*> nodes;
};

// One entry a rank.
std::vector<RankPrograms> BuildPrograms(const Module& module);

}  // namespace pipec
