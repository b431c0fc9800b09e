#include "compiler/schedule/late_validation.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

struct Place {
  int rank = -1, index = -1;
};

// Both ends of each forward message.
struct Ends {
  Place send, receive;
};

std::vector<Ends> ForwardMessages(const Schedule& schedule) {
  std::map<std::tuple<int, int, int>, Ends> messages;  // from, to, microbatch
  for (int r = 0; r < static_cast<int>(schedule.ranks.size()); ++r) {
    for (int k = 0; k < static_cast<int>(schedule.ranks[r].size()); ++k) {
      const Action& action = schedule.ranks[r][k];
      if (action.kind == ActionKind::kSendF)
        messages[{action.stage, action.peer_stage, action.microbatch}].send = {r, k};
      if (action.kind == ActionKind::kRecvF)
        messages[{action.peer_stage, action.stage, action.microbatch}].receive = {r, k};
    }
  }
  std::vector<Ends> ends;
  for (const auto& [key, both] : messages) {
    if (both.send.rank >= 0 && both.receive.rank >= 0) ends.push_back(both);
  }
  return ends;
}

bool MayRunTwice(const Action& action, const std::vector<bool>& repeats) {
  return action.kind == ActionKind::kSendF || action.kind == ActionKind::kRecvF ||
         (action.kind == ActionKind::kF && repeats[action.stage]);
}

}  // namespace

std::vector<int> LatestValidation(const Schedule& schedule, const std::vector<bool>& repeats) {
  std::vector<int> at;
  for (const std::vector<Action>& list : schedule.ranks) {
    const auto first = std::find_if(list.begin(), list.end(),
                                    [&](const Action& action) { return !MayRunTwice(action, repeats); });
    at.push_back(static_cast<int>(first - list.begin()));
  }
  const std::vector<Ends> messages = ForwardMessages(schedule);
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [send, receive] : messages) {
      const bool sent = send.index < at[send.rank], received = receive.index < at[receive.rank];
      if (sent == received) continue;
      const Place& inside = sent ? send : receive;
      at[inside.rank] = inside.index;
      changed = true;
    }
  }
  const bool any = std::any_of(at.begin(), at.end(), [](int place) { return place > 0; });
  return any ? at : std::vector<int>();
}

absl::Status CheckValidation(const Schedule& schedule, absl::Span<const int> at) {
  const std::vector<bool> repeats(schedule.shape.stages(), true);
  if (at.empty()) return absl::OkStatus();
  if (schedule.asynchronous() || at.size() != schedule.ranks.size())
    return absl::FailedPreconditionError(
        "a step is validated late on some ranks only, or where steps overlap anyway");
  for (size_t r = 0; r < at.size(); ++r) {
    if (at[r] < 0 || at[r] > static_cast<int>(schedule.ranks[r].size()))
      return absl::FailedPreconditionError(absl::StrCat("rank ", r, " validates at none of its actions"));
    for (int k = 0; k < at[r]; ++k) {
      if (MayRunTwice(schedule.ranks[r][k], repeats)) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", r, " position ", k, ": ", ToString(schedule.ranks[r][k]),
                       " cannot run twice, and stands in front of the validation of the step before"));
    }
  }
  for (const auto& [send, receive] : ForwardMessages(schedule)) {
    if ((send.index < at[send.rank]) == (receive.index < at[receive.rank])) continue;
    return absl::FailedPreconditionError(absl::StrCat("rank ", send.rank, " position ", send.index, ": ",
                                                      ToString(schedule.ranks[send.rank][send.index]),
                                                      " is on its way while the step before is validated"));
  }
  return absl::OkStatus();
}

}  // namespace pipec
