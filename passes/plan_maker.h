// What it takes to try plans of a model: the choice (auto_plan.h) asks, tools answer with the user's flags.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"

namespace pipec {

struct PlanCandidate {
  std::string schedule;
  ScheduleShape shape;
  std::shared_ptr<const Schedule> found;  // by the search; null: the named schedule
  int64_t batch = 0;                      // samples a step
  double step_seconds = 0;
  double order_seconds = 0;  // until the last F, I or W of the step ends: the update not counted
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
  // The model, as a candidate has it, at level planned. One that was found gets the cut of one microbatch in flight
  // (CompileOptions::cut_for_one_in_flight). `memory_limit` (bytes a device): instead of the user's, if above 0.
  virtual absl::StatusOr<std::unique_ptr<Module>> Compile(const PlanCandidate& candidate,
                                                          int64_t memory_limit) = 0;
};

}  // namespace pipec
