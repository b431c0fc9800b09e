// The best schedule that can be found for a problem: what --schedule=auto does once the stages are cut.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/schedule/search/problem.h"

namespace pipec {

struct FoundSchedule {
  Schedule schedule;     // "auto": F, I and W only
  double makespan = 0;   // seconds, as Simulate finds
  double bound = 0;      // seconds that no schedule of the problem can beat
  bool is_best = false;  // proved: it reaches the bound, or all others were looked at
};

// From list scheduling, tuned, and from `starts` (schedules of the problem's shape and placement, such as the named
// ones; those that do not fit its memory are passed over), improved by local search; exact where the problem is
// small. Never worse than the best of `starts`. A function of its arguments; takes less than a second for 8 ranks
// and 32 microbatches. ResourceExhausted if no order that fits was found, InvalidArgument for a problem that
// contradicts itself.
absl::StatusOr<FoundSchedule> FindBestSchedule(const ScheduleProblem& problem,
                                               absl::Span<const Schedule> starts);

// From `start`, a schedule of the problem's shape and placement, one whose longest span of a rank is shorter, where
// local search finds it; never longer. The span: from the start of its first action to the end of its last, and
// `after` that (P entries, seconds; such as its update). Where steps follow one another, a step takes no less. A
// function of its arguments. ResourceExhausted if `start` does not fit the memory.
absl::StatusOr<Schedule> ShortenSpans(const ScheduleProblem& problem, absl::Span<const double> after,
                                      const Schedule& start);

}  // namespace pipec
