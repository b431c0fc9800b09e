// One step as the report draws it: who did what when, the messages in between, memory over time. Plain data,
// from the simulation of a finished module or from a trace of what really happened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/module.h"
#include "compiler/report/memory_over_time.h"
#include "compiler/report/origins.h"

namespace pipec {

// What one stage sends to another, once a microbatch.
struct PictureLink {
  int from_stage = 0;
  int to_stage = 0;
  int64_t bytes = 0;
};

struct PictureMessage {
  int link = 0;  // index into StepPicture::links
  int microbatch = 0;
  double sent = 0;     // seconds
  double arrived = 0;  // measured: when the receiver had it
};

struct StepPicture {
  std::string schedule;
  std::string times;      // what they are: "measured", or NameOfSimulated
  int step = 0;           // measured: which step of the run
  ScheduleShape shape;
  std::vector<int> rank_of_stage;
  // Per rank, by start, seconds from the step's begin: F, B, I, W and what happens once a step; no messages,
  // and no sums over replicas, which are under way beside the others.
  std::vector<std::vector<SimulatedAction>> ranks;
  std::vector<PictureLink> links;        // between different ranks
  std::vector<PictureMessage> messages;  // by sender's rank and time
  double step_seconds = 0;
  double bubble_ratio = 0;  // idle / (ranks x time of F, B, I and W)
  int recomputing_stages = 0;
  int64_t peak_bytes = 0;           // of the rank that needs most; 0 if measured
  std::vector<MemoryCurve> memory;  // one a rank; none if measured
};

// The simulated step of a module of level planned, whose nodes' times have these origins.
StepPicture ModelledStep(const Module& module, const Origins& origins);

// The step of median length in a Chrome trace that piperun wrote while it executed the module's plan.
// InvalidArgument if it is no such trace, or of another plan: `path` is named.
absl::StatusOr<StepPicture> MeasuredStep(absl::string_view trace, absl::string_view path,
                                         const Module& module);

}  // namespace pipec
