// Shares nothing with the generators, AddMessages or the timeline. Three looks at a schedule: each rank's
// list by itself, the messages by their pairs, and then all ranks together, run with sends that block.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/schedule/check_completes.h"
#include "compiler/schedule/fault.h"
#include "compiler/schedule/rounds.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kNowhere = -1;

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
    return CheckCompletes(schedule_, links_, !compute_only_);
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

  absl::Status Bad(int r, int position, absl::string_view what) const {
    return Fault(schedule_, {r, position}, what);
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
    RETURN_IF_ERROR(CheckForwardCount());
    places_.assign((static_cast<size_t>(ActionKind::kW) + 1) * S_ * M_, kNowhere);
    sends_.assign(links_.size() * M_, kNowhere);
    receives_.assign(links_.size() * M_, kNowhere);
    return absl::OkStatus();
  }

  // Every stage has an F of every microbatch: a few actions of large numbers shall not make large tables.
  absl::Status CheckForwardCount() {
    int64_t forwards = 0;
    absl::flat_hash_set<std::pair<int, int>> there;
    for (const auto& list : schedule_.ranks) {
      for (const Action& action : list) {
        if (action.kind != ActionKind::kF) continue;
        ++forwards;
        there.insert({action.stage, action.microbatch});
      }
    }
    if (forwards >= static_cast<int64_t>(S_) * M_) return absl::OkStatus();
    Action missing{ActionKind::kF, 0, 0};
    while (there.contains({missing.stage, missing.microbatch})) {
      if (++missing.microbatch == M_) missing = {ActionKind::kF, missing.stage + 1, 0};
    }
    return Missing(missing);
  }

  // At the last action of the stage up to the microbatch, behind which the missing one could stand.
  absl::Status Missing(const Action& missing) const {
    const int r = RankOf(missing.stage);
    const std::vector<Action>& list = schedule_.ranks[r];
    for (int k = static_cast<int>(list.size()) - 1; k >= 0; --k) {
      if (IsCompute(list[k].kind) && list[k].stage == missing.stage &&
          list[k].microbatch <= missing.microbatch)
        return Bad(r, k, absl::StrCat(ToString(missing), " is missing behind it"));
    }
    return Bad(r, static_cast<int>(list.size()), absl::StrCat(ToString(missing), " is missing"));
  }

  // One list by itself: right rank, nothing twice, F, I and W of each stage in microbatch order, F before I
  // before W, the F and B of a pair together.
  absl::Status CheckRank(int r) {
    absl::flat_hash_map<std::pair<int, int>, int> last;  // by stage and row of order: the latest microbatch
    int pair = kNowhere;                                 // its F, if that is the latest compute action
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
      if (pair != kNowhere && action.kind != ActionKind::kB)
        return Bad(r, k, "comes behind the F of a pair, where its B belongs");
      pair = action.paired ? k : kNowhere;
      if (action.paired && action.kind != ActionKind::kF) return Bad(r, k, "a pair begins with an F");
    }
    return pair == kNowhere ? absl::OkStatus() : Bad(r, pair, "the F of a pair without its B");
  }

  absl::Status PlaceMessage(int r, int k) {
    const Action& action = schedule_.ranks[r][k];
    const bool send = Sends(action.kind);
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
        auto missing = [&](ActionKind kind) { return Missing({kind, s, m}); };
        if (Place(ActionKind::kF, s, m) == kNowhere) return missing(ActionKind::kF);
        if (forward_only_) {
          if (BackwardPlace(s, m) == kNowhere) continue;
          return Bad(RankOf(s), BackwardPlace(s, m), "in a schedule that only goes forward");
        }
        if (Place(ActionKind::kB, s, m) != kNowhere) continue;
        if (Place(ActionKind::kI, s, m) == kNowhere)
          return missing(exists(ActionKind::kI) ? ActionKind::kI : ActionKind::kB);
        if (Place(ActionKind::kW, s, m) == kNowhere) return missing(ActionKind::kW);
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
          if (send == kNowhere)
            return Bad(from, MakerPlace(l, m), absl::StrCat("nobody sends the ", MessageName(l, m)));
          return Bad(to, UserPlace(l, m), absl::StrCat("nobody receives the ", MessageName(l, m)));
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
      std::vector<bool> updated(S_, false), summed(S_, false);
      for (int k = 0; k < static_cast<int>(schedule_.ranks[r].size()); ++k) {
        const Action& action = schedule_.ranks[r][k];
        if (!IsOnceAStep(action.kind)) {
          if (over) return Bad(r, k, "after what happens once a step");
          continue;
        }
        if (action.microbatch >= 0) return Bad(r, k, "happens once a step and has no microbatch");
        const int s = action.stage;
        if (action.kind == ActionKind::kReduceGrad) {
          if (s < 0 || s >= S_ || RankOf(s) != r)
            return Bad(r, k, "adds up gradients of another rank's stage");
          if (summed[s]) return Bad(r, k, "stands there twice");
          if (over) return Bad(r, k, "after what needs the sum");
          if (k < std::max(Place(ActionKind::kB, s, M_ - 1), Place(ActionKind::kW, s, M_ - 1)))
            return Bad(r, k, "before the last gradient of its stage");
          summed[s] = true;
          continue;
        }
        over = true;
        if (action.kind == ActionKind::kUpdate) {
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

  const Schedule& schedule_;
  const int P_, S_, M_;
  std::vector<StageLink> links_;
  const bool compute_only_;
  bool forward_only_ = false;
  absl::flat_hash_map<std::pair<int, int>, int> link_of_;
  std::vector<int> places_;            // by kind, stage, microbatch
  std::vector<int> sends_, receives_;  // by link, microbatch
};

}  // namespace

absl::Status CheckSchedule(const Schedule& schedule, absl::Span<const StageLink> links) {
  return schedule.asynchronous() ? CheckRounds(schedule, links) : Checker(schedule, links).Check();
}

}  // namespace pipec
