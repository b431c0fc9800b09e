#include "absl/strings/str_cat.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/timeline.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Appends in the order of modelled time, which is the global order that every list is a projection of.
class MessagePlacer : public TimelineObserver {
 public:
  MessagePlacer(const Schedule& compute, absl::Span<const StageLink> links, Schedule& result)
      : compute_(compute), links_(links), result_(result) {}

  void Start(int rank, int index, double) override {
    result_.ranks[rank].push_back(compute_.ranks[rank][index]);
  }
  void End(int, int, double) override {}
  void Message(int link, int microbatch, double, double) override {
    const auto [from, to, seconds] = links_[link];
    const int sender = compute_.rank_of_stage[from], receiver = compute_.rank_of_stage[to];
    if (sender == receiver) return;
    const bool forward = from < to;
    result_.ranks[sender].push_back(
        {forward ? ActionKind::kSendF : ActionKind::kSendB, from, microbatch, to});
    result_.ranks[receiver].push_back(
        {forward ? ActionKind::kRecvF : ActionKind::kRecvB, to, microbatch, from});
  }

 private:
  const Schedule& compute_;
  const absl::Span<const StageLink> links_;
  Schedule& result_;
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
