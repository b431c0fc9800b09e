// --schedule=auto, --stages=auto, --microbatches=auto: which plan of the model takes least time a sample.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "passes/pass.h"
#include "passes/plan_maker.h"
#include "passes/plan_space.h"

namespace pipec {

struct AutoPlan {
  // As PlanTrials sorts them. Of several that are refused for the same reason one stands for all.
  std::vector<PlanCandidate> candidates;
  // Pairs of ranks and microbatches of which nothing was compiled: none of them can be among the two best.
  int passed_over = 0;
};

// Chooses among the ranks and microbatches of `space` and the schedules of `options`. Schedule auto: every one that
// gives the numbers of one device, with 1 to 4 stages a rank where it takes several, or `options.virtual_stages` if
// that is set; then the best order of I, W and F apart (compiler/schedule/search) that fits the memory, for every way
// in which these place the stages, and for the stages as the best of these has them. Any other: that one, with its
// default number of stages a rank or `options.virtual_stages`.
//
// What cannot be among the two best is not compiled: a plan is never faster than an equal share of the model's work
// on each of its ranks (plan_bounds.h), and, where the batch grows with the microbatches, the same plan with fewer
// of them is taken to be no faster a sample, as it waits as long for its pipeline to fill and updates as often.
// Where memory may have made the plan with more of them slow, its time without a limit is what counts.
//
// The first candidate has no refusal. If all are refused the error is that of the first that could be tried; if
// memory is what they lack and there were several ranks or microbatches to choose from, the least that would do,
// with the flags that lower it.
absl::StatusOr<AutoPlan> FindAutoPlan(const CompileOptions& options, const PlanSpace& space,
                                      PlanMaker& maker);

}  // namespace pipec
