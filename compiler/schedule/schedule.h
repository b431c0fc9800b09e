// A schedule: per rank the ordered list of actions of one step. Plain data: generators make it, Lower adds
// messages, the checker and the simulator read it. Nothing here knows a graph.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/schedule/action.h"

namespace pipec {

// The size of the problem: P ranks, V stages a rank (S = P V stages), M microbatches.
struct ScheduleShape {
  int ranks = 1;
  int virtual_stages = 1;
  int microbatches = 1;

  int stages() const { return ranks * virtual_stages; }
};

enum class Placement { kLoop, kV };
absl::string_view Name(Placement placement);  // "loop", "V"

struct Schedule {
  std::string name;
  ScheduleShape shape;
  std::vector<int> rank_of_stage;             // S entries
  std::vector<std::vector<Action>> ranks;     // P lists
  // Of a schedule from a file: by rank, the cell of its line (from 1) in which each of its compute actions stands.
  std::vector<std::vector<int>> cells;
  // Empty: a step ends before the next begins. Else there is no flush: the lists are one round of the steady state
  // (rounds.h), and this says by rank how many updates the weights lack that F, B, I and W of a step use: step t uses
  // version max(0, t - delay), where version v is what v updates made, and its UPDATE makes version t + 1 of version t.
  std::vector<int> weight_delay;

  bool asynchronous() const { return !weight_delay.empty(); }
};

// Ranks of all stages: loop: stage s on s mod P; V: rank r holds r and 2P-1-r.
std::vector<int> PlaceStages(const ScheduleShape& shape, Placement placement);

// One row per named schedule; `generate` gives compute actions only (F, B, I, W). The texts are for --list-schedules: P
// ranks, M microbatches, V stages a rank, r the rank, s the stage, F, B, I, W the times of a whole 1/P of the model.
struct ScheduleInfo {
  absl::string_view name;
  Placement placement;
  int default_virtual_stages;
  bool forward_only;              // infer
  absl::string_view update_rule;  // "once a step": all microbatches' gradients, no parameter used that is out of date
  absl::string_view bubble;       // idle time of a rank in a step, equal stages and messages free
  absl::string_view activations;  // most that rank r keeps, in microbatches of a whole 1/P of the model
  absl::string_view versions;     // of the parameters, that a rank keeps
  absl::string_view messages;     // per microbatch, between neighbours, with P > 1
  absl::string_view needed_microbatches, needed_virtual_stages;
  bool late_updates = false;              // no flush between steps: its numbers are not those of one rank without delay
  bool updates_each_microbatch = false;  // by itself in every stage: no norm of all gradients, no shared parameters
  // Refuses a microbatch or stage count it cannot take: InvalidArgument that names the nearest that works.
  absl::StatusOr<Schedule> (*generate)(const ScheduleShape& shape);
};

// All named schedules, in the order of the documentation.
absl::Span<const ScheduleInfo> AllSchedules();
// Null if there is none.
const ScheduleInfo* FindSchedule(absl::string_view name);

// Schedule infer, on stages that are placed as another schedule wants them: what a rank does forward only.
Schedule ForwardOnly(const ScheduleShape& shape, std::vector<int> rank_of_stage);

// A message type between two stages: activations forward (from < to) or gradients backward (from > to).
struct StageLink {
  int from_stage;
  int to_stage;
  double seconds = 0;  // modelled time of one message on the wire

  bool operator==(const StageLink&) const = default;
};

// Modelled seconds of the compute actions of each stage; B is I + W.
struct StageTimes {
  double f = 1;
  double i = 1;
  double w = 1;
};

// Adds SEND and RECV actions for every link and microbatch to a schedule of compute actions. The lists are
// projections of one global order (a receive is placed on the peer's list at the moment, in modelled time,
// at which the send is placed), so they complete even when every send blocks until its receive is posted.
// Messages between stages of one rank are left out. FailedPrecondition if the compute actions deadlock. Rounds get
// them by PlaceRounds.
absl::StatusOr<Schedule> AddMessages(const Schedule& schedule, absl::Span<const StageLink> links,
                                     absl::Span<const StageTimes> times);

// Adds REDUCE_GRAD for every stage of `stages` right behind the last B or W of the stage, so that the sum over the
// replicas is under way while the rank and others go on. All replicas have the same lists, so that what completes for
// one pipeline when every action blocks completes for all.
void PlaceReductions(const std::vector<bool>& stages, Schedule& schedule);

// Refuses, naming rank, position and action, with the lists around it (fault.h): a missing or double action, an
// action on the wrong rank, F, I or W of a stage out of microbatch order, an I before its F, a W before its I, a
// message without its counterpart, a message that is used before it arrives or sent before it is made, and a cycle
// when every send blocks until the peer reaches its receive. Independent of the generators and of AddMessages.
// `links` may be empty for a schedule of compute actions only: then stage s needs s-1 (forward), s+1 (backward).
// Rounds are checked by CheckRounds.
absl::Status CheckSchedule(const Schedule& schedule, absl::Span<const StageLink> links);

struct SimulatedAction {
  Action action;
  double start = 0;
  double end = 0;
};

struct Simulation {
  std::vector<std::vector<SimulatedAction>> ranks;
  double makespan = 0;  // of F, B, I and W
  double step_seconds = 0;  // until the last action is over: the makespan, unless what happens once a step was added
  double bubble_ratio = 0;             // idle / (ranks x makespan), compute actions only
  std::vector<int> peak_activations;   // per stage: microbatches whose F ran and whose B or W has not
};

// Runs the schedule (with or without message actions) on modelled times. Each direction of a pair of ranks is
// its own channel; messages overlap compute. Rounds are simulated by SimulateRounds.
absl::StatusOr<Simulation> Simulate(const Schedule& schedule, absl::Span<const StageLink> links,
                                    absl::Span<const StageTimes> times);

// PyTorch's compute-only CSV: one line per rank, cells in execution order.
std::string ToCsv(const Schedule& schedule);

// The compute actions of a schedule in PyTorch's CSV, compute-only or with messages, which are left out. Older files
// write B for the input gradient and BW for the full backward: any BW, or a W without any I, marks such a file. The
// stages of a rank are those on its line; the number of microbatches is what there is. InvalidArgument, naming line and
// cell, for what is none, and for a stage on two lines or none; whether the order is sound is CheckSchedule's to say.
absl::StatusOr<Schedule> FromCsv(absl::string_view text, absl::string_view name);

}  // namespace pipec
