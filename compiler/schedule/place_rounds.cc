#include <algorithm>
#include <deque>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/rounds.h"
#include "compiler/schedule/timeline.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

struct Entry {
  Action action;
  int step;
  int round = 0;  // of the first compute action from here on
};

// Writes down, in the order of time, what happens on every rank.
class Projection : public TimelineObserver {
 public:
  Projection(const Schedule& rounds, const Unrolled& unrolled, absl::Span<const StageLink> links,
             const OnceAStep& once)
      : rounds_(rounds), unrolled_(unrolled), links_(links), once_(once), M_(rounds.shape.microbatches) {
    lists_.resize(rounds.ranks.size());
    steps_.assign(unrolled.schedule.shape.microbatches / M_, {M_ * rounds.shape.stages()});
  }

  void Compute(int rank, int index, double start, double end) override {
    std::vector<Entry>& list = lists_[rank];
    const Action& action = unrolled_.schedule.ranks[rank][index];
    const RoundPlace& place = unrolled_.places[rank][index];
    if (action.kind == ActionKind::kF && action.microbatch % M_ == 0 && once_.updates[action.stage]) {
      const int step = place.step - 1 - rounds_.weight_delay[rank];
      if (step >= 0) list.push_back({{.kind = ActionKind::kUpdate, .stage = action.stage}, step});
    }
    Advance(start);
    list.push_back({action, place.step, place.round});
    for (auto entry = list.rbegin() + 1; entry != list.rend() && !IsCompute(entry->action.kind); ++entry)
      entry->round = place.round;
    if (action.kind == ActionKind::kF || action.kind == ActionKind::kI) return;
    Step& step = steps_[place.step];
    step.end = std::max(step.end, end);
    if (--step.left == 0) complete_.push_back(place.step);
  }

  void Message(int link, int microbatch, double start, double) override {
    Advance(start);
    const auto [from, to, seconds] = links_[link];
    const int sender = rounds_.rank_of_stage[from], receiver = rounds_.rank_of_stage[to];
    if (sender == receiver) return;
    const bool forward = from < to;
    lists_[sender].push_back(
        {{forward ? ActionKind::kSendF : ActionKind::kSendB, from, microbatch, to}, microbatch / M_});
    // In front of what its rank runs or has just run when the message goes on the wire: with the times that there
    // are in the end, and hops, that may be later.
    std::vector<Entry>& list = lists_[receiver];
    const bool in_front = !list.empty() && IsCompute(list.back().action.kind);
    list.insert(list.end() - in_front,
                {{forward ? ActionKind::kRecvF : ActionKind::kRecvB, to, microbatch, from},
                 microbatch / M_,
                 in_front ? list.back().round : 0});
  }

  // What a rank does in one round, lags relative to it.
  std::vector<Action> Round(int rank, int round) const {
    std::vector<Action> actions;
    for (const Entry& entry : lists_[rank]) {
      if (entry.round != round) continue;
      Action action = entry.action;
      if (action.microbatch >= 0) action.microbatch %= M_;
      action.lag = round - entry.step;
      actions.push_back(action);
    }
    return actions;
  }

 private:
  struct Step {
    int left;  // backward actions to come
    double end = 0;
  };

  // What follows a step stands on all ranks where its last backward action is over.
  void Advance(double time) {
    while (!complete_.empty() && steps_[complete_.front()].end <= time) {
      const int step = complete_.front();
      complete_.pop_front();
      for (size_t r = 0; r < lists_.size(); ++r) {
        if (once_.ties[r]) lists_[r].push_back({{.kind = ActionKind::kReduceTied}, step});
        if (once_.norms) lists_[r].push_back({{.kind = ActionKind::kNorm}, step});
      }
    }
  }

  const Schedule& rounds_;
  const Unrolled& unrolled_;
  const absl::Span<const StageLink> links_;
  const OnceAStep& once_;
  const int M_;
  std::vector<std::vector<Entry>> lists_;
  std::vector<Step> steps_;
  std::deque<int> complete_;  // steps whose last backward action has begun
};

}  // namespace

absl::StatusOr<Schedule> PlaceRounds(const Schedule& rounds, absl::Span<const StageLink> links,
                                     const OnceAStep& once) {
  const int lag = LargestLag(rounds), filled = lag + 1, tries = rounds.shape.ranks + 4;
  const Unrolled unrolled = Unroll(rounds, filled + tries + lag + 4);
  std::vector<StageLink> free(links.begin(), links.end());
  for (StageLink& link : free) link.seconds = 0;
  Projection projection(rounds, unrolled, free, once);
  RETURN_IF_ERROR(
      RunTimeline(unrolled.schedule, free, std::vector<StageTimes>(rounds.shape.stages()), projection));
  Schedule result = rounds;
  for (int r = 0; r < rounds.shape.ranks; ++r) {
    int round = filled;
    while (projection.Round(r, round) != projection.Round(r, round + 1)) {
      if (++round == filled + tries)
        return absl::InternalError(
            absl::StrCat("schedule ", rounds.name, ": rank ", r, " comes to no steady state"));
    }
    result.ranks[r] = projection.Round(r, round);
    int least = result.ranks[r][0].lag;
    for (const Action& action : result.ranks[r]) least = std::min(least, action.lag);
    for (Action& action : result.ranks[r]) action.lag -= least;
  }
  return result;
}

}  // namespace pipec
