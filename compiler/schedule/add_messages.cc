#include "absl/strings/str_cat.h"
#include "compiler/schedule/rounds.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/timeline.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Appends in the order of modelled time, which is the global order that every list is a projection of; only a
// receive comes in front of what its rank runs when the message goes on the wire, so that neither message nor sender
// need wait until that is over. Where nothing goes backward it does not if that would take one more buffer than the
// timeline leaves room for.
class MessagePlacer : public TimelineObserver {
 public:
  MessagePlacer(const Schedule& compute, absl::Span<const StageLink> links, Schedule& result)
      : compute_(compute), links_(links), result_(result), busy_until_(compute.ranks.size(), 0) {
    for (const auto& list : compute.ranks) {
      for (const Action& action : list) forward_only_ &= action.kind == ActionKind::kF;
    }
  }

  void Compute(int rank, int index, double, double end) override {
    result_.ranks[rank].push_back(compute_.ranks[rank][index]);
    busy_until_[rank] = end;
  }
  void Message(int link, int microbatch, double start, double) override {
    const auto [from, to, seconds] = links_[link];
    const int sender = compute_.rank_of_stage[from], receiver = compute_.rank_of_stage[to];
    if (sender == receiver) return;
    const bool forward = from < to;
    result_.ranks[sender].push_back(
        {forward ? ActionKind::kSendF : ActionKind::kSendB, from, microbatch, to});
    std::vector<Action>& list = result_.ranks[receiver];
    const bool in_front = busy_until_[receiver] > start && MayComeLater(list.back(), from, to, microbatch);
    list.insert(list.end() - in_front,
                {forward ? ActionKind::kRecvF : ActionKind::kRecvB, to, microbatch, from});
  }

 private:
  // Whether `last` of the receiver's list can stand behind the receive: messages stay in their order.
  bool MayComeLater(const Action& last, int from, int to, int microbatch) const {
    if (!IsCompute(last.kind)) return false;
    return !forward_only_ || last.stage != to || last.microbatch >= microbatch - (to - from);
  }

  const Schedule& compute_;
  const absl::Span<const StageLink> links_;
  Schedule& result_;
  bool forward_only_ = true;
  std::vector<double> busy_until_;  // by rank: the end of the last compute action of its list
};

}  // namespace

absl::StatusOr<Schedule> AddMessages(const Schedule& schedule, absl::Span<const StageLink> links,
                                     absl::Span<const StageTimes> times) {
  if (schedule.asynchronous()) {
    const OnceAStep nothing{std::vector<bool>(schedule.shape.ranks, false), false,
                            std::vector<bool>(schedule.shape.stages(), false)};
    return PlaceRounds(schedule, links, nothing);
  }
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
