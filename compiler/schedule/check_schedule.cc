// Shares nothing with the generators, AddMessages or the timeline. Three looks at a schedule: each rank's
// list by itself, the messages by their pairs, and then all ranks together, run with sends that block.
#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/schedule/schedule.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kNowhere = -1;

bool IsSend(ActionKind kind) { return kind == ActionKind::kSendF || kind == ActionKind::kSendB; }
bool IsOnceAStep(ActionKind kind) { return !IsCompute(kind) && !IsMessage(kind); }

class Checker {
 public:
  Checker(const Schedule& schedule, absl::Span<const StageLink> links)
      : schedule_(schedule),
        P_(schedule.shape.ranks),
        S_(schedule.shape.stages()),
        M_(schedule.shape.microbatches),
        links_(links.begin(), links.end()),
        compute_only_(links.empty()) {
    for (int s = 0; compute_only_ && s + 1 < S_; ++s) {
      links_.push_back({s, s + 1});
      links_.push_back({s + 1, s});
    }
  }

  absl::Status Check() {
    RETURN_IF_ERROR(CheckShape());
    for (int r = 0; r < P_; ++r) RETURN_IF_ERROR(CheckRank(r));
    RETURN_IF_ERROR(CheckComplete());
    if (!compute_only_) RETURN_IF_ERROR(CheckMessages());
    RETURN_IF_ERROR(CheckOnceAStep());
    return CheckCompletes();
  }

 private:
  // Where a compute action stands in its rank's list.
  int& Place(ActionKind kind, int stage, int m) {
    return places_[(static_cast<size_t>(kind) * S_ + stage) * M_ + m];
  }
  // Where the gradient of a stage's inputs is made: by its B or by its I.
  int BackwardPlace(int stage, int m) {
    return std::max(Place(ActionKind::kB, stage, m), Place(ActionKind::kI, stage, m));
  }
  int RankOf(int stage) const { return schedule_.rank_of_stage[stage]; }
  bool Forward(int link) const { return links_[link].from_stage < links_[link].to_stage; }
  int& SendPlace(int link, int m) { return sends_[static_cast<size_t>(link) * M_ + m]; }
  int& ReceivePlace(int link, int m) { return receives_[static_cast<size_t>(link) * M_ + m]; }
  // The action that makes what goes over a link, and the one that needs it.
  int MakerPlace(int link, int m) {
    const int stage = links_[link].from_stage;
    return Forward(link) ? Place(ActionKind::kF, stage, m) : BackwardPlace(stage, m);
  }
  int UserPlace(int link, int m) {
    const int stage = links_[link].to_stage;
    return Forward(link) ? Place(ActionKind::kF, stage, m) : BackwardPlace(stage, m);
  }

  std::string At(int r, int position) const {
    return absl::StrCat("schedule ", schedule_.name, ": rank ", r, ", position ", position, ", ",
                        ToString(schedule_.ranks[r][position]));
  }
  absl::Status Bad(int r, int position, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(At(r, position), ": ", what, Excerpt(r, position)));
  }
  // The rank's line around a position, which is marked.
  std::string Excerpt(int r, int position) const {
    constexpr int kNeighbours = 6;
    const std::vector<Action>& list = schedule_.ranks[r];
    const int begin = std::max(0, position - kNeighbours);
    const int end = std::min(static_cast<int>(list.size()), position + kNeighbours + 1);
    std::string text = absl::StrCat("\n  rank ", r, ":", begin > 0 ? " ..." : "");
    for (int k = begin; k < end; ++k) {
      absl::StrAppend(&text, " ", k == position ? ">" : "", ToString(list[k]), k == position ? "<" : "");
    }
    return absl::StrCat(text, end < static_cast<int>(list.size()) ? " ..." : "");
  }
  std::string MessageName(int link, int m) const {
    return absl::StrCat(Forward(link) ? "activations" : "gradients", " of microbatch ", m, " from stage ",
                        links_[link].from_stage, " to stage ", links_[link].to_stage);
  }

  absl::Status CheckShape() {
    if (P_ < 1 || S_ < P_ || M_ < 1 || static_cast<int>(schedule_.ranks.size()) != P_ ||
        static_cast<int>(schedule_.rank_of_stage.size()) != S_) {
      return absl::InvalidArgumentError(
          absl::StrCat("schedule ", schedule_.name, ": ", schedule_.ranks.size(), " lists and ",
                       schedule_.rank_of_stage.size(), " placed stages for ", P_, " ranks, ", S_, " stages"));
    }
    for (int s = 0; s < S_; ++s) {
      if (RankOf(s) < 0 || RankOf(s) >= P_) {
        return absl::InvalidArgumentError(
            absl::StrCat("schedule ", schedule_.name, ": stage ", s, " is on rank ", RankOf(s), " of ", P_));
      }
    }
    for (int l = 0; l < static_cast<int>(links_.size()); ++l) {
      const auto [from, to, seconds] = links_[l];
      if (from < 0 || to < 0 || from >= S_ || to >= S_ || from == to ||
          !link_of_.insert({{from, to}, l}).second) {
        return absl::InvalidArgumentError(absl::StrCat("link from stage ", from, " to stage ", to, " of ", S_,
                                                       " stages is given twice or is none"));
      }
    }
    places_.assign((static_cast<size_t>(ActionKind::kW) + 1) * S_ * M_, kNowhere);
    sends_.assign(links_.size() * M_, kNowhere);
    receives_.assign(links_.size() * M_, kNowhere);
    return absl::OkStatus();
  }

  // One list by itself: right rank, nothing twice, F, I and W of each stage in microbatch order, F before I
  // before W.
  absl::Status CheckRank(int r) {
    absl::flat_hash_map<std::pair<int, int>, int> last;  // by stage and row of order: the latest microbatch
    for (int k = 0; k < static_cast<int>(schedule_.ranks[r].size()); ++k) {
      const Action& action = schedule_.ranks[r][k];
      if (IsOnceAStep(action.kind)) continue;
      const int s = action.stage, m = action.microbatch;
      if (s < 0 || s >= S_ || m < 0 || m >= M_) return Bad(r, k, "stage or microbatch out of range");
      if (RankOf(s) != r) return Bad(r, k, absl::StrCat("stage ", s, " is on rank ", RankOf(s)));
      if (IsMessage(action.kind)) {
        RETURN_IF_ERROR(PlaceMessage(r, k));
        continue;
      }
      if (Place(action.kind, s, m) != kNowhere) return Bad(r, k, "stands there twice");
      Place(action.kind, s, m) = k;
      // B stands in the order of I and in that of W.
      for (ActionKind row : {ActionKind::kF, ActionKind::kI, ActionKind::kW}) {
        if (action.kind != row && !(action.kind == ActionKind::kB && row != ActionKind::kF)) continue;
        auto [previous, first] = last.insert({{s, static_cast<int>(row)}, m});
        if (!first && previous->second > m)
          return Bad(r, k, absl::StrCat("comes after microbatch ", previous->second));
        previous->second = m;
      }
      if (action.kind != ActionKind::kF && Place(ActionKind::kF, s, m) == kNowhere)
        return Bad(r, k, "before its F");
      if (action.kind == ActionKind::kW && Place(ActionKind::kI, s, m) == kNowhere)
        return Bad(r, k, "before its I");
      if (action.kind == ActionKind::kI && Place(ActionKind::kB, s, m) != kNowhere)
        return Bad(r, k, "after a B");
      if (action.kind == ActionKind::kB && Place(ActionKind::kI, s, m) != kNowhere)
        return Bad(r, k, "after an I");
    }
    return absl::OkStatus();
  }

  absl::Status PlaceMessage(int r, int k) {
    const Action& action = schedule_.ranks[r][k];
    const bool send = IsSend(action.kind);
    const int from = send ? action.stage : action.peer_stage, to = send ? action.peer_stage : action.stage;
    auto link = compute_only_ ? link_of_.end() : link_of_.find({from, to});
    if (link == link_of_.end())
      return Bad(r, k, absl::StrCat("nothing goes from stage ", from, " to stage ", to));
    const bool forward = action.kind == ActionKind::kSendF || action.kind == ActionKind::kRecvF;
    if (forward != Forward(link->second)) return Bad(r, k, "goes against its direction");
    if (RankOf(from) == RankOf(to)) return Bad(r, k, "both stages are on this rank");
    int& place =
        send ? SendPlace(link->second, action.microbatch) : ReceivePlace(link->second, action.microbatch);
    if (place != kNowhere) return Bad(r, k, "stands there twice");
    place = k;
    return absl::OkStatus();
  }

  absl::Status CheckComplete() {
    auto exists = [this](ActionKind kind) {
      const size_t block = static_cast<size_t>(S_) * M_;
      const auto begin = places_.begin() + static_cast<size_t>(kind) * block;
      return std::any_of(begin, begin + block, [](int place) { return place != kNowhere; });
    };
    const ScheduleInfo* info = FindSchedule(schedule_.name);
    forward_only_ = info ? info->forward_only
                         : !exists(ActionKind::kB) && !exists(ActionKind::kI) && !exists(ActionKind::kW);
    for (int s = 0; s < S_; ++s) {
      for (int m = 0; m < M_; ++m) {
        auto missing = [&](absl::string_view kind) {
          return absl::InvalidArgumentError(
              absl::StrCat("schedule ", schedule_.name, ": rank ", RankOf(s), " lacks ", s, kind, m));
        };
        if (Place(ActionKind::kF, s, m) == kNowhere) return missing("F");
        if (forward_only_) {
          if (BackwardPlace(s, m) == kNowhere) continue;
          return Bad(RankOf(s), BackwardPlace(s, m), "in a schedule that only goes forward");
        }
        if (Place(ActionKind::kB, s, m) != kNowhere) continue;
        if (Place(ActionKind::kI, s, m) == kNowhere) return missing(exists(ActionKind::kI) ? "I" : "B");
        if (Place(ActionKind::kW, s, m) == kNowhere) return missing("W");
      }
    }
    return absl::OkStatus();
  }

  // Every message that crosses ranks is sent once, after it is made, and received once, before it is needed.
  absl::Status CheckMessages() {
    for (int l = 0; l < static_cast<int>(links_.size()); ++l) {
      const int from = RankOf(links_[l].from_stage), to = RankOf(links_[l].to_stage);
      if (from == to || (forward_only_ && !Forward(l))) continue;
      for (int m = 0; m < M_; ++m) {
        const int send = SendPlace(l, m), receive = ReceivePlace(l, m);
        if (send == kNowhere || receive == kNowhere) {
          const bool unsent = send == kNowhere;
          return absl::InvalidArgumentError(
              absl::StrCat("schedule ", schedule_.name, ": rank ", unsent ? from : to, " does not ",
                           unsent ? "send" : "receive", " the ", MessageName(l, m)));
        }
        if (send < MakerPlace(l, m)) return Bad(from, send, "sent before it is made");
        if (receive > UserPlace(l, m)) return Bad(to, receive, "used before it arrives");
      }
    }
    return absl::OkStatus();
  }

  // What happens once a step comes after all microbatches, each thing at most once, norms on all ranks or on
  // none.
  absl::Status CheckOnceAStep() {
    int ranks_with_norm = 0;
    for (int r = 0; r < P_; ++r) {
      bool over = false, norm = false, tied = false;
      std::vector<bool> updated(S_, false);
      for (int k = 0; k < static_cast<int>(schedule_.ranks[r].size()); ++k) {
        const Action& action = schedule_.ranks[r][k];
        if (!IsOnceAStep(action.kind)) {
          if (over) return Bad(r, k, "after what happens once a step");
          continue;
        }
        over = true;
        if (action.microbatch >= 0) return Bad(r, k, "happens once a step and has no microbatch");
        if (action.kind == ActionKind::kUpdate) {
          const int s = action.stage;
          if (s < 0 || s >= S_ || RankOf(s) != r) return Bad(r, k, "updates a stage of another rank");
          if (updated[s]) return Bad(r, k, "stands there twice");
          updated[s] = true;
        } else {
          bool& seen = action.kind == ActionKind::kNorm ? norm : tied;
          if (seen) return Bad(r, k, "stands there twice");
          if (norm && action.kind == ActionKind::kReduceTied)
            return Bad(r, k, "after the norms that need it");
          if (std::find(updated.begin(), updated.end(), true) != updated.end()) {
            return Bad(r, k, "after an update that needs it");
          }
          seen = true;
        }
      }
      ranks_with_norm += norm;
    }
    if (ranks_with_norm == 0 || ranks_with_norm == P_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("schedule ", schedule_.name, ": NORM on ", ranks_with_norm, " ranks of ", P_));
  }

  // The rank that must go on before rank r can do its next action, or kNowhere if it can now.
  int WaitsFor(int r) {
    const Action& action = schedule_.ranks[r][reached_[r]];
    const int m = action.microbatch;
    if (IsSend(action.kind)) {
      // A send blocks until the peer has got to its receive.
      const int link = link_of_.at({action.stage, action.peer_stage}), peer = RankOf(action.peer_stage);
      return reached_[peer] < ReceivePlace(link, m) ? peer : kNowhere;
    }
    if (!IsCompute(action.kind) || action.kind == ActionKind::kW) return kNowhere;
    for (int l : links_into_[action.stage]) {
      if (Forward(l) != (action.kind == ActionKind::kF)) continue;
      const int from = RankOf(links_[l].from_stage);
      const bool message = !compute_only_ && from != r;
      if (reached_[from] <= (message ? SendPlace(l, m) : MakerPlace(l, m))) return from;
    }
    return kNowhere;
  }

  absl::Status CheckCompletes() {
    reached_.assign(P_, 0);
    links_into_.resize(S_);
    for (int l = 0; l < static_cast<int>(links_.size()); ++l) links_into_[links_[l].to_stage].push_back(l);
    std::vector<std::vector<int>> waiting(P_);  // by the rank that is waited for
    std::deque<int> runnable;
    for (int r = 0; r < P_; ++r) runnable.push_back(r);
    auto over = [this](int r) { return reached_[r] == static_cast<int>(schedule_.ranks[r].size()); };
    while (!runnable.empty()) {
      const int r = runnable.front();
      runnable.pop_front();
      const int before = reached_[r];
      int blocker = kNowhere;
      // Whoever stands before its receive has got there: that is what lets the sender go on.
      while (!over(r) && (blocker = WaitsFor(r)) == kNowhere) ++reached_[r];
      if (!over(r)) waiting[blocker].push_back(r);
      if (reached_[r] == before) continue;
      std::vector<int> woken = std::move(waiting[r]);
      waiting[r].clear();
      runnable.insert(runnable.end(), woken.begin(), woken.end());
    }
    std::string stuck, lines;
    for (int r = 0; r < P_; ++r) {
      if (over(r)) continue;
      absl::StrAppend(&stuck, stuck.empty() ? "" : ", ", "rank ", r, " at position ", reached_[r], ", ",
                      ToString(schedule_.ranks[r][reached_[r]]), ", for rank ", WaitsFor(r));
      absl::StrAppend(&lines, Excerpt(r, reached_[r]));
    }
    if (stuck.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("schedule ", schedule_.name, ": ranks wait for each other: ", stuck, lines));
  }

  const Schedule& schedule_;
  const int P_, S_, M_;
  std::vector<StageLink> links_;
  const bool compute_only_;
  bool forward_only_ = false;
  absl::flat_hash_map<std::pair<int, int>, int> link_of_;
  std::vector<std::vector<int>> links_into_;  // by stage
  std::vector<int> places_;                   // by kind, stage, microbatch
  std::vector<int> sends_, receives_;         // by link, microbatch
  std::vector<int> reached_;                  // position each rank has got to
};

}  // namespace

absl::Status CheckSchedule(const Schedule& schedule, absl::Span<const StageLink> links) {
  return Checker(schedule, links).Check();
}

}  // namespace pipec
