// --trace: what really happened, as a Chrome trace (Perfetto reads it). pid is the rank; compute, send and
// receive have a line each. The last steps of the run are kept.
#pragma once

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/driver/session.h"

namespace pipec {

class TraceFile {
 public:
  static constexpr int kSteps = 16;

  // Takes the slices of the step that just ended.
  void Add(Session& session, StepKind kind, int64_t step);
  absl::Status Write(Session& session, const std::string& path) const;

 private:
  struct Step {
    StepKind kind;
    int64_t step;
    std::vector<std::vector<TraceSlice>> ranks;
  };
  std::deque<Step> steps_;
};

}  // namespace pipec
