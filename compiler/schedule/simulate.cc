#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/schedule/rounds.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/timeline.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

struct Span {
  double start = 0;
  double end = 0;
};

class Recorder : public TimelineObserver {
 public:
  Recorder(const Schedule& schedule, size_t links) : messages_(links * schedule.shape.microbatches) {
    for (const auto& list : schedule.ranks) actions_.emplace_back(list.size());
    microbatches_ = schedule.shape.microbatches;
  }

  void Compute(int rank, int index, double start, double end) override {
    actions_[rank][index] = {start, end};
  }
  void Message(int link, int microbatch, double start, double end) override {
    messages_[link * microbatches_ + microbatch] = {start, end};
  }

  Span OfAction(int rank, int index) const { return actions_[rank][index]; }
  Span OnWire(int link, int microbatch) const { return messages_[link * microbatches_ + microbatch]; }

 private:
  std::vector<std::vector<Span>> actions_;
  std::vector<Span> messages_;  // by link and microbatch
  int microbatches_ = 0;
};

// An activation is kept from its F to its B or W; all of a stage's actions stand on one rank, in order.
std::vector<int> PeakActivations(const Schedule& schedule) {
  std::vector<int> kept(schedule.shape.stages(), 0), peak(schedule.shape.stages(), 0);
  for (const auto& list : schedule.ranks) {
    for (const Action& action : list) {
      if (action.kind == ActionKind::kF)
        peak[action.stage] = std::max(peak[action.stage], ++kept[action.stage]);
      if (action.kind == ActionKind::kB || action.kind == ActionKind::kW) --kept[action.stage];
    }
  }
  return peak;
}

}  // namespace

absl::StatusOr<Simulation> Simulate(const Schedule& schedule, absl::Span<const StageLink> links,
                                    absl::Span<const StageTimes> times) {
  if (schedule.asynchronous()) return SimulateRounds(schedule, links, times);
  Recorder recorder(schedule, links.size());
  RETURN_IF_ERROR(RunTimeline(schedule, links, times, recorder));
  absl::flat_hash_map<std::pair<int, int>, int> link_of;
  for (size_t l = 0; l < links.size(); ++l) link_of[{links[l].from_stage, links[l].to_stage}] = l;

  Simulation simulation;
  double busy = 0;
  for (int r = 0; r < schedule.shape.ranks; ++r) {
    std::vector<SimulatedAction>& list = simulation.ranks.emplace_back();
    double now = 0;  // end of the latest compute action
    for (size_t k = 0; k < schedule.ranks[r].size(); ++k) {
      const Action& action = schedule.ranks[r][k];
      Span span{now, now};
      if (IsCompute(action.kind)) {
        span = recorder.OfAction(r, k);
        now = span.end;
        busy += span.end - span.start;
      } else if (IsMessage(action.kind)) {
        const bool sends = action.kind == ActionKind::kSendF || action.kind == ActionKind::kSendB;
        auto link = link_of.find(sends ? std::pair(action.stage, action.peer_stage)
                                       : std::pair(action.peer_stage, action.stage));
        if (link == link_of.end()) {
          return absl::InvalidArgumentError(
              absl::StrCat("schedule ", schedule.name, ": message ", ToString(action), " goes over no link"));
        }
        span = recorder.OnWire(link->second, action.microbatch);
      }
      list.push_back({action, span.start, span.end});
    }
    simulation.makespan = std::max(simulation.makespan, now);
  }
  simulation.step_seconds = simulation.makespan;
  const double total = simulation.makespan * schedule.shape.ranks;
  simulation.bubble_ratio = total > 0 ? 1 - busy / total : 0;
  simulation.peak_activations = PeakActivations(schedule);
  return simulation;
}

}  // namespace pipec
