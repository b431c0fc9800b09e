// The scheduling problem: who does what when, given where the stages are, what their actions take and keep, and how much
// a rank may keep. Plain structs; knows no graph.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/schedule/schedule.h"

namespace pipec {

// Bytes by which an action changes what its rank keeps; over F, I and W they add up to 0.
struct StageMemory {
  int64_t f = 0;  // what a microbatch keeps for its backward pass: at least 0
  int64_t i = 0;  // usually at most 0: what only I needs is let go, what W needs of the gradients comes in
  int64_t w = 0;
};

struct ScheduleProblem {
  ScheduleShape shape;
  std::vector<int> rank_of_stage;   // S entries
  std::vector<StageLink> links;     // with seconds on the wire
  std::vector<StageTimes> times;    // S entries
  std::vector<StageMemory> memory;  // S entries
  std::vector<int64_t> limit;       // P entries: bytes that may be kept at once
};

}  // namespace pipec
