// What lies in a rank's memory while a step runs.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/module.h"

namespace pipec {

struct MemoryPoint {
  double seconds = 0;
  int64_t bytes = 0;  // from here to the next point
};

struct MemoryCurve {
  int64_t always_bytes = 0;    // parameters, gradients, optimizer state, constants
  int64_t reserved_bytes = 0;  // what the plan takes: also what single actions work in
  // always_bytes and what microbatches keep (activations, messages, inputs): from the start of the first
  // action that touches a buffer to the end of the last. Ascending in time, from 0 on.
  std::vector<MemoryPoint> points;
};

// One curve a rank, of a module of level planned, by its simulation.
std::vector<MemoryCurve> MemoryOverTime(const Module& module);

}  // namespace pipec
