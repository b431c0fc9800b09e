#include "absl/strings/str_cat.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/timeline.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Appends in the order of modelled time, which is the global order that every list is a projection of; only a
// receive comes in front of what its rank runs at that moment, so that its sender need not wait until that is over. Where
// nothing goes backward it does not if that would take one more buffer than the timeline leaves room for.
class MessagePlacer : public TimelineObserver {
 public:
  MessagePlacer(const Schedule& compute, absl::Span<const StageLink> links, Schedule& result)
      : compute_(compute), links_(links), result_(result), running_(compute.ranks.size(), false) {
    for (const auto& list : compute.ranks) {
      for (const Action& action : list) forward_only_ &= action.kind == ActionKind::kF;
    }
  }

  void Start(int rank, int index, double) override {
    result_.ranks[rank].push_back(compute_.ranks[rank][index]);
    running_[rank] = true;
  }
  void End(int rank, int, double) override { running_[rank] = false; }
  void Message(int link, int microbatch, double, double) override {
    const auto [from, to, seconds] = links_[link];
    const int sender = compute_.rank_of_stage[from], receiver = compute_.rank_of_stage[to];
    if (sender == receiver) return;
    const bool forward = from < to;
    result_.ranks[sender].push_back(
        {forward ? ActionKind::kSendF : ActionKind::kSendB, from, microbatch, to});
    std::vector<Action>& list = result_.ranks[receiver];
    const bool in_front = running_[receiver] && !(forward_only_ && list.back().stage == to &&
                                                  list.back().microbatch < microbatch - (to - from));
    list.insert(list.end() - in_front,
                {forward ? ActionKind::kRecvF : ActionKind::kRecvB, to, microbatch, from});
  }

 private:
  const Schedule& compute_;
  const absl::Span<const StageLink> links_;
  Schedule& result_;
  bool forward_only_ = true;
  std::vector<bool> running_;  // by rank: the last of its list has begun and not ended
};

}  // namespace

absl::StatusOr<Schedule> AddMessages(const Schedule& schedule, absl::Span<const StageLink> links,
                                     absl::Span<const StageTimes> times) {
  Schedule result = schedule;
  for (auto& list : result.ranks) {
    for (const Action& action : list) {
      if (IsCompute(action.kind)) continue;
      return absl::InvalidArgumentError(absl::StrCat("schedule ", schedule.name, " has ", ToString(action),
                                                     " where only compute actions were expected"));
    }
    list.clear();
  }
  MessagePlacer placer(schedule, links, result);
  RETURN_IF_ERROR(RunTimeline(schedule, links, times, placer));
  return result;
}

}  // namespace pipec
