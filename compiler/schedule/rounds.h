// Schedules without flush: steps overlap, so nobody's list is one step from its beginning to its end. What a rank does
// is told by one round of the steady state instead. In round t an action of lag l works on step t - l, and is left out
// if that step is none of the run's: steps [begin, end) take rounds begin .. end - 1 + the largest lag, the first of
// which fill the pipeline and the last of which empty it. Rounds of different ranks have nothing to do with each other;
// messages alone hold ranks together. The smallest lag of every rank is 0.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/schedule/schedule.h"

namespace pipec {

struct RoundPlace {
  int round;
  int index;  // in the rank's list
  int step;
};

// The rounds of steps 0 .. steps-1 one after the other: a schedule of steps x M microbatches, of which microbatch m of
// step t is number t M + m, and where each of its actions comes from. What happens once a step keeps microbatch -1.
struct Unrolled {
  Schedule schedule;
  std::vector<std::vector<RoundPlace>> places;  // by rank, one an action
};
Unrolled Unroll(const Schedule& rounds, int steps);

int LargestLag(const Schedule& rounds);

// What happens once a step, and where.
struct OnceAStep {
  std::vector<bool> ties;     // by rank: exchanges accumulators of shared parameters
  bool norms = false;         // all ranks exchange norms
  std::vector<bool> updates;  // by stage: has an UPDATE
  std::vector<bool> sums;     // by stage: adds up over the replicas; empty: there is one replica
};

// Adds messages, for every link, and what happens once a step to rounds of compute actions. Everything is a projection
// of one global order, as AddMessages makes it, with times of one unit an F, I and W: the lists complete even when
// sends block. REDUCE_TIED and NORM stand where the last rank is done with the step, UPDATE as late as it may: before
// the first F that needs it. FailedPrecondition if the compute actions deadlock.
absl::StatusOr<Schedule> PlaceRounds(const Schedule& rounds, absl::Span<const StageLink> links,
                                     const OnceAStep& once);

// CheckSchedule for rounds: what it demands of the unrolled list, of the first step to the last. And of weight
// versions, of which a rank has delay + 1, the newest in the place of the oldest: what an action reads is there, B,
// I and W read what F read, an update comes after all gradients of its step and writes over no version that is
// still needed; ties before norms before updates.
absl::Status CheckRounds(const Schedule& rounds, absl::Span<const StageLink> links);

// Simulate for rounds: a round in the middle of a long run. `makespan` is the time between two steps of the steady
// state; a rank's times are those of its own round, of which the earliest of all ranks starts at 0.
absl::StatusOr<Simulation> SimulateRounds(const Schedule& rounds, absl::Span<const StageLink> links,
                                          absl::Span<const StageTimes> times);

}  // namespace pipec
