// What it takes to try plans of a model: the choice (auto_plan.h) asks, tools answer with the user's flags.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"

namespace pipec {

struct PlanCandidate {
  std::string schedule;
  ScheduleShape shape;
  std::shared_ptr<const Schedule> found;  // by the search; null: the named schedule
  // Of one that was found: its stages are those of this schedule; null: those cut for one microbatch in flight.
  std::shared_ptr<const Schedule> cut_for;
  int64_t batch = 0;                      // samples a step
  double step_seconds = 0;
  double order_seconds = 0;  // until the last F, I or W of the step ends: the update not counted
  double bound_seconds = 0;  // no order of the same stages on the same ranks ends earlier; 0: not known
  double bubble_ratio = 0;
  int64_t peak_bytes = 0;
  std::string refusal;  // why it cannot be had; the figures are 0 then

  double SampleSeconds() const { return step_seconds / static_cast<double>(batch); }
};

class PlanMaker {
 public:
  virtual ~PlanMaker() = default;

  // The devices that so many ranks would have.
  virtual absl::StatusOr<Cluster> ClusterOf(int ranks) = 0;
  // The model as it is before it is cut, with microbatches as so many of them are.
  virtual absl::StatusOr<std::unique_ptr<Module>> BeforeCut(int microbatches) = 0;
  // The model, as a candidate has it, at level planned. `memory_limit` (bytes a device): instead of the user's, if
  // above 0.
  virtual absl::StatusOr<std::unique_ptr<Module>> Compile(const PlanCandidate& candidate,
                                                          int64_t memory_limit) = 0;
  // The same, its memory laid out no better than it takes to tell that it fits (CompileOptions::draft_memory).
  virtual absl::StatusOr<std::unique_ptr<Module>> Draft(const PlanCandidate& candidate) = 0;

  // What comes next may take long.
  virtual void OnPhase(absl::string_view what) = 0;
};

}  // namespace pipec
