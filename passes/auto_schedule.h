// --schedule=auto: all named schedules, then the best order that a search finds, on the model itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/pass.h"

namespace pipec {

struct ScheduleCandidate {
  std::string name;
  int virtual_stages = 1;
  std::shared_ptr<const Schedule> found;  // by the search; null: the named schedule
  double step_seconds = 0;
  double order_seconds = 0;  // until the last F, I or W of the step ends: the update not counted
  double bubble_ratio = 0;
  int64_t peak_bytes = 0;
  std::string refusal;  // why it cannot be had; the figures are 0 then
};

struct AutoSchedule {
  // The fastest first, of equals the one that needs less memory; refused ones last.
  std::vector<ScheduleCandidate> candidates;
  // With the stages cut and placed as for the search the last F, I or W ends no earlier; 0: not known.
  double bound_seconds = 0;
};

// Compiles the model, as a candidate has it, to level planned. One that was found gets the cut of one microbatch in flight
// (CompileOptions::cut_for_one_in_flight).
using CompileCandidate = std::function<absl::StatusOr<std::unique_ptr<Module>>(const ScheduleCandidate&)>;

// Every schedule that gives the numbers of one device, with 1 to 4 stages a rank where it takes several, or
// `options.virtual_stages` if that is set; then, for every way in which these place the stages, the best order of I, W and F
// apart (compiler/schedule/search) that fits the memory. The first candidate has no refusal; if all are
// refused the error is that of the first that could be tried.
absl::StatusOr<AutoSchedule> FindAutoSchedule(const CompileOptions& options, const CompileCandidate& compile);

}  // namespace pipec
