#include "compiler/schedule/timeline.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr double kNotSent = -1;

double Duration(ActionKind kind, const StageTimes& times) {
  switch (kind) {
    case ActionKind::kF:
      return times.f;
    case ActionKind::kI:
      return times.i;
    case ActionKind::kW:
      return times.w;
    default:
      return times.i + times.w;
  }
}

struct Event {
  double time;
  bool wake;  // false: an action ends; true: a rank may be able to go on
  int rank;
  // The earliest first; at one time all ends before anybody starts.
  bool operator<(const Event& other) const {
    return std::tie(time, wake, rank) > std::tie(other.time, other.wake, other.rank);
  }
};

class Timeline {
 public:
  Timeline(const Schedule& schedule, absl::Span<const StageLink> links, absl::Span<const StageTimes> times,
           TimelineObserver& observer)
      : schedule_(schedule),
        links_(links),
        times_(times),
        observer_(observer),
        M_(schedule.shape.microbatches) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Prepare());
    for (int r = 0; r < schedule_.shape.ranks; ++r) events_.push({0, true, r});
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.wake) {
        TryStart(event.rank, event.time);
      } else {
        End(event.rank, event.time);
      }
    }
    return CheckAllDone();
  }

 private:
  struct Stage {
    std::vector<int> forward_in, forward_out, backward_in, backward_out;  // links
    int forwards_begun = 0;
  };

  int RankOf(int stage) const { return schedule_.rank_of_stage[stage]; }
  const Action& Next(int r) const { return schedule_.ranks[r][next_[r]]; }
  size_t Slot(int index, int microbatch) const { return static_cast<size_t>(index) * M_ + microbatch; }

  absl::Status Prepare() {
    const int S = schedule_.shape.stages();
    if (static_cast<int>(times_.size()) != S || static_cast<int>(schedule_.rank_of_stage.size()) != S ||
        static_cast<int>(schedule_.ranks.size()) != schedule_.shape.ranks) {
      return absl::InvalidArgumentError(absl::StrCat("schedule ", schedule_.name, " of ", S,
                                                     " stages got times of ", times_.size(),
                                                     " stages, ranks of ", schedule_.rank_of_stage.size(),
                                                     " stages and ", schedule_.ranks.size(), " lists"));
    }
    stages_.resize(S);
    absl::flat_hash_set<std::pair<int, int>> seen;
    for (int l = 0; l < static_cast<int>(links_.size()); ++l) {
      const auto [from, to, seconds] = links_[l];
      if (from < 0 || from >= S || to < 0 || to >= S || from == to || !seen.insert({from, to}).second) {
        return absl::InvalidArgumentError(absl::StrCat("link from stage ", from, " to stage ", to, " of ", S,
                                                       " stages is given twice or is none"));
      }
      (from < to ? stages_[from].forward_out : stages_[from].backward_out).push_back(l);
      (from < to ? stages_[to].forward_in : stages_[to].backward_in).push_back(l);
    }
    forward_only_ = true;
    for (const auto& list : schedule_.ranks) {
      for (const Action& action : list) {
        if (!IsCompute(action.kind)) continue;
        if (action.stage < 0 || action.stage >= S || action.microbatch < 0 || action.microbatch >= M_) {
          return absl::InvalidArgumentError(absl::StrCat("schedule ", schedule_.name, ": action ",
                                                         ToString(action), " is outside its shape"));
        }
        forward_only_ &= action.kind == ActionKind::kF;
      }
    }
    arrival_.assign(links_.size() * M_, kNotSent);
    forward_done_.assign(static_cast<size_t>(S) * M_, false);
    input_gradient_done_.assign(static_cast<size_t>(S) * M_, false);
    next_.assign(schedule_.shape.ranks, 0);
    busy_.assign(schedule_.shape.ranks, false);
    for (int r = 0; r < schedule_.shape.ranks; ++r) SkipToCompute(r);
    return absl::OkStatus();
  }

  void SkipToCompute(int r) {
    const std::vector<Action>& list = schedule_.ranks[r];
    while (next_[r] < static_cast<int>(list.size()) && !IsCompute(list[next_[r]].kind)) ++next_[r];
  }

  bool Done(int r) const { return next_[r] == static_cast<int>(schedule_.ranks[r].size()); }

  bool Arrived(const std::vector<int>& links, int m, double time) const {
    return std::all_of(links.begin(), links.end(), [&](int l) {
      const double arrival = arrival_[Slot(l, m)];
      return arrival != kNotSent && arrival <= time;
    });
  }

  bool Ready(const Action& action, double time) const {
    const Stage& stage = stages_[action.stage];
    const int m = action.microbatch;
    switch (action.kind) {
      case ActionKind::kF:
        return Arrived(stage.forward_in, m, time) && (!forward_only_ || LinksHaveRoom(stage, m));
      case ActionKind::kW:
        return input_gradient_done_[Slot(action.stage, m)];
      default:
        return forward_done_[Slot(action.stage, m)] && Arrived(stage.backward_in, m, time);
    }
  }

  bool LinksHaveRoom(const Stage& stage, int m) const {
    return std::all_of(stage.forward_out.begin(), stage.forward_out.end(), [&](int l) {
      return m - stages_[links_[l].to_stage].forwards_begun <= links_[l].to_stage - links_[l].from_stage;
    });
  }

  void TryStart(int r, double time) {
    if (busy_[r] || Done(r) || !Ready(Next(r), time)) return;
    const Action& action = Next(r);
    busy_[r] = true;
    const double end = time + Duration(action.kind, times_[action.stage]);
    observer_.Compute(r, next_[r], time, end);
    events_.push({end, false, r});
    if (action.kind != ActionKind::kF) return;
    ++stages_[action.stage].forwards_begun;
    if (!forward_only_) return;
    for (int l : stages_[action.stage].forward_in) events_.push({time, true, RankOf(links_[l].from_stage)});
  }

  void End(int r, double time) {
    const Action& action = Next(r);
    const Stage& stage = stages_[action.stage];
    if (action.kind == ActionKind::kF) {
      forward_done_[Slot(action.stage, action.microbatch)] = true;
      Send(stage.forward_out, action.microbatch, time);
    } else if (action.kind != ActionKind::kW) {
      input_gradient_done_[Slot(action.stage, action.microbatch)] = true;
      Send(stage.backward_out, action.microbatch, time);
    }
    busy_[r] = false;
    ++next_[r];
    SkipToCompute(r);
    events_.push({time, true, r});
  }

  void Send(const std::vector<int>& links, int m, double time) {
    for (int l : links) {
      const int from = RankOf(links_[l].from_stage), to = RankOf(links_[l].to_stage);
      double start = time, end = time;
      if (from != to) {
        double& channel_free = channel_free_[{from, to}];
        start = std::max(time, channel_free);
        end = channel_free = start + links_[l].seconds;
      }
      arrival_[Slot(l, m)] = end;
      observer_.Message(l, m, start, end);
      events_.push({end, true, to});
    }
  }

  absl::Status CheckAllDone() const {
    std::string waiting;
    for (int r = 0; r < schedule_.shape.ranks; ++r) {
      if (Done(r)) continue;
      absl::StrAppend(&waiting, waiting.empty() ? "" : ", ", "rank ", r, " at ", ToString(Next(r)),
                      " (position ", next_[r], ")");
    }
    if (waiting.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("schedule ", schedule_.name, " deadlocks: waiting for ever are ", waiting));
  }

  const Schedule& schedule_;
  const absl::Span<const StageLink> links_;
  const absl::Span<const StageTimes> times_;
  TimelineObserver& observer_;
  const int M_;
  bool forward_only_ = true;
  std::vector<Stage> stages_;
  std::vector<double> arrival_;                           // by link and microbatch
  std::vector<bool> forward_done_, input_gradient_done_;  // by stage and microbatch
  std::vector<int> next_;
  std::vector<bool> busy_;
  absl::flat_hash_map<std::pair<int, int>, double> channel_free_;  // by rank from and rank to
  std::priority_queue<Event> events_;
};

}  // namespace

absl::Status RunTimeline(const Schedule& schedule, absl::Span<const StageLink> links,
                         absl::Span<const StageTimes> times, TimelineObserver& observer) {
  return Timeline(schedule, links, times, observer).Run();
}

}  // namespace pipec
