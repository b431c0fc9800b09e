// The nodes of each rank, sorted into the programs that its actions run.
#pragma once

#include <vector>

#include "compiler/ir/module.h"

namespace pipec {

struct RankPrograms {
  // All F, then all B, I and W, stage by stage; in training NORM, then UPDATE of every stage that has one.
  // Needs the schedule: it says whether a stage runs B or I and W. A stage that runs both has a B that is its I and
  // then its W, so that a value lies where it lies in these.
  std::vector<Program> programs;
  // Everything that lives on the rank in execution order, views and messages (of the receiving stage)
  // included.
  std::vector<Node*> nodes;
};

// Whether the program is a B that repeats the I and W of its stage, which come right after it.
bool RepeatsIAndW(const std::vector<Program>& programs, int program);

// One entry a rank.
std::vector<RankPrograms> BuildPrograms(const Module& module);

}  // namespace pipec
