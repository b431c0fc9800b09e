// What a step takes with a cut, as its schedule runs it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"
#include "compiler/schedule/schedule.h"
#include "passes/stage_items.h"

namespace pipec {

class CutStep {
 public:
  // All but the module must outlive this.
  CutStep(const Module& module, const StageItems& items, const Schedule& schedule, const Cluster& cluster);

  // By stage: its items on its rank's own device, and what every action takes beside them.
  std::vector<StageTimes> Times(const std::vector<int>& stage_of) const;

  // Seconds of a cut, given by item, as the finished plan is simulated: compute in the schedule's order, one
  // message for each pair of stages, the gradients of shared parameters, the norms and the update. `again`: by
  // stage, seconds a microbatch that run again in front of the backward pass; empty: none. Infinity if that is not
  // below `below`, or if the schedule does not complete.
  double Of(const std::vector<int>& stage_of, absl::Span<const double> again = {},
            double below = std::numeric_limits<double>::infinity()) const;

  // Of all calls so far: items, tensors, actions and messages looked at.
  int64_t steps() const { return steps_; }

 private:
  // The update of one parameter: seconds by kind of device.
  struct ParameterUpdate {
    std::vector<int> users;           // items
    int64_t bytes = 0;                // of its gradient
    std::vector<double> norm;         // on the first rank that has it, before ranks wait for each other
    std::vector<double> sum, update;  // on each: of its gradients, before; of itself, behind
  };
  // Seconds once a step.
  struct OnceAStep {
    std::vector<double> norms, updates;  // by stage
    std::vector<char> tied;              // by rank: has a parameter that others have too
    double tied_message = 0;             // the longest between two of these
  };

  OnceAStep Once(const std::vector<int>& stage_of) const;
  std::vector<StageLink> Links(const std::vector<int>& stage_of) const;
  // No step of these stages is faster.
  double LeastSeconds(const std::vector<StageTimes>& times, const OnceAStep& once) const;
  double Rounds(std::vector<StageTimes> times, const OnceAStep& once,
                const std::vector<StageLink>& links) const;
  // With a flush.
  double Step(const std::vector<StageTimes>& times, const OnceAStep& once,
              const std::vector<StageLink>& links) const;
  // The same where the update may go ahead of the norms of other ranks, as split-validation has it.
  double LateStep(const std::vector<int>& stage_of, const std::vector<StageTimes>& times,
                  const OnceAStep& once, const std::vector<StageLink>& links) const;
  // What follows the last compute action of each rank.
  double AfterLast(const std::vector<double>& last, const OnceAStep& once, std::vector<double>& done,
                   double& norms) const;

  const StageItems& items_;
  const Schedule& schedule_;
  const Cluster& cluster_;
  bool backward_ = false, splits_ = false;         // the schedule has backward actions; and W apart
  bool one_stage_a_rank_ = false, waits_ = false;  // ranks wait for each other's norms
  double norm_message_ = 0;
  std::vector<double> scale_;  // by kind of device: of what the norm means for a gradient
  std::vector<ParameterUpdate> parameters_;
  std::vector<bool> repeats_;  // by item: its forward node can run twice (late_validation.h)
  mutable int64_t steps_ = 0;
};

}  // namespace pipec
