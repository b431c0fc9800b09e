// The compute actions of a schedule on modelled times: what AddMessages and Simulate both watch.
#pragma once

#include "compiler/schedule/schedule.h"

namespace pipec {

class TimelineObserver {
 public:
  virtual ~TimelineObserver() = default;
  // `index`: position in the rank's list. Called in order of `start`.
  virtual void Compute(int rank, int index, double start, double end) = 0;
  // Called in order of the ends of the actions that make them: the message is on the wire in [start, end). Between
  // stages of one rank too, with start = end.
  virtual void Message(int link, int microbatch, double start, double end) = 0;
};

// Runs every rank's compute actions in the order of its list, each as early as what it needs is there; other
// actions are passed over. Each direction of a pair of ranks is one channel that carries one message at a
// time. If nothing goes backward, a stage waits until the stage at the other end of a link has begun all but
// (to - from) of the microbatches sent: a link between neighbours never holds more than two messages. Ties go
// by rank, so the result is a function of the arguments. Time O(n log n) in actions and messages. Errors:
// InvalidArgument for links or times that do not belong to the schedule; FailedPrecondition if the actions
// deadlock, naming the actions that wait.
absl::Status RunTimeline(const Schedule& schedule, absl::Span<const StageLink> links,
                         absl::Span<const StageTimes> times, TimelineObserver& observer);

}  // namespace pipec
