// The scheduling problem: who does what when, given where the stages are, what their actions take and keep, and how
// much a rank may keep. Plain structs; knows no graph.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/schedule/check_memory.h"
#include "compiler/schedule/schedule.h"

namespace pipec {

struct ScheduleProblem {
  ScheduleShape shape;
  std::vector<int> rank_of_stage;   // S entries
  std::vector<StageLink> links;     // with seconds on the wire
  std::vector<StageTimes> times;    // S entries
  std::vector<KeptBytes> memory;    // S entries
  std::vector<int64_t> limit;       // P entries: bytes that may be kept at once
};

}  // namespace pipec
