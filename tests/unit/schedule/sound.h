// A second opinion on whether a schedule is sound: what every list must hold is counted, and then a step is run as a
// machine would, with tokens for what is made and sent. Knows nothing of the code under test and is meant for small
// schedules of compute actions and messages.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "compiler/schedule/schedule.h"
#include "tests/unit/schedule/rendezvous.h"

namespace pipec {

// Whether every action that there must be is there once, on its rank, and nothing else. `with_messages`: over every
// link between two ranks goes one message a microbatch.
inline bool HoldsEachActionOnce(const Schedule& schedule, const std::vector<StageLink>& links,
                                bool forward_only, bool with_messages) {
  using Key =
      std::tuple<int, ActionKind, int, int, int>;  // rank, kind, stage, microbatch, stage at the other end
  std::map<Key, int> counts;
  for (size_t r = 0; r < schedule.ranks.size(); ++r) {
    for (const Action& a : schedule.ranks[r])
      ++counts[{static_cast<int>(r), a.kind, a.stage, a.microbatch, a.peer_stage}];
  }
  // Takes what must be there once out of the counts.
  const auto take = [&](ActionKind kind, int stage, int microbatch, int peer) {
    const auto it = counts.find({schedule.rank_of_stage[stage], kind, stage, microbatch, peer});
    if (it == counts.end() || it->second != 1) return false;
    counts.erase(it);
    return true;
  };
  for (int m = 0; m < schedule.shape.microbatches; ++m) {
    for (int s = 0; s < schedule.shape.stages(); ++s) {
      if (!take(ActionKind::kF, s, m, -1)) return false;
      if (forward_only || take(ActionKind::kB, s, m, -1)) continue;
      if (!take(ActionKind::kI, s, m, -1) || !take(ActionKind::kW, s, m, -1)) return false;
    }
    for (const auto& [from, to, seconds] : links) {
      if (!with_messages || schedule.rank_of_stage[from] == schedule.rank_of_stage[to]) continue;
      if (!take(from < to ? ActionKind::kSendF : ActionKind::kSendB, from, m, to)) return false;
      if (!take(from < to ? ActionKind::kRecvF : ActionKind::kRecvB, to, m, from)) return false;
    }
  }
  return counts.empty();
}

// Whether F, I and W of every stage, B being both, come in the order of the microbatches, and a pair is an F and the B
// that is computed next.
inline bool IsInOrder(const Schedule& schedule) {
  for (const auto& list : schedule.ranks) {
    std::map<std::pair<int, int>, int> next;  // by stage and row: 0 F, 1 I, 2 W
    const Action* pair = nullptr;
    for (const Action& a : list) {
      if (!IsCompute(a.kind)) continue;
      if (pair && a.kind != ActionKind::kB) return false;
      pair = a.paired ? &a : nullptr;
      if (a.paired && a.kind != ActionKind::kF) return false;
      const bool b = a.kind == ActionKind::kB;
      if (a.kind == ActionKind::kF && a.microbatch != next[{a.stage, 0}]++) return false;
      if ((b || a.kind == ActionKind::kI) && a.microbatch != next[{a.stage, 1}]++) return false;
      if ((b || a.kind == ActionKind::kW) && a.microbatch != next[{a.stage, 2}]++) return false;
    }
    if (pair) return false;
  }
  return true;
}

// Whether all ranks get through their lists. A send goes when its token is made and the peer has posted the receive; a
// compute action when the tokens that it needs are on its rank and the actions of its own stage that come before it are
// done. Without messages a token is everywhere as soon as it is made.
inline bool RunsThrough(const Schedule& schedule, const std::vector<StageLink>& links, bool with_messages) {
  std::set<std::tuple<int, int, int>> made, posted, there;  // stage from, stage to, microbatch
  std::set<std::tuple<ActionKind, int, int>> done;          // kind, stage, microbatch; B as I and W
  std::vector<size_t> next(schedule.ranks.size(), 0);
  const auto can = [&](const Action& a) {
    if (a.kind == ActionKind::kSendF || a.kind == ActionKind::kSendB) {
      const std::tuple token(a.stage, a.peer_stage, a.microbatch);
      return made.contains(token) && posted.contains(token);
    }
    if (!IsCompute(a.kind)) return true;
    if (a.kind == ActionKind::kW) return done.contains({ActionKind::kI, a.stage, a.microbatch});
    const bool forward = a.kind == ActionKind::kF;
    if (!forward && !done.contains({ActionKind::kF, a.stage, a.microbatch})) return false;
    for (const auto& [from, to, seconds] : links) {
      if (to == a.stage && (from < to) == forward && !there.contains({from, to, a.microbatch})) return false;
    }
    return true;
  };
  const auto act = [&](const Action& a) {
    if (a.kind == ActionKind::kSendF || a.kind == ActionKind::kSendB) {
      there.insert({a.stage, a.peer_stage, a.microbatch});
    } else if (!IsCompute(a.kind)) {
      posted.insert({a.peer_stage, a.stage, a.microbatch});
    } else if (a.kind == ActionKind::kW) {
      done.insert({ActionKind::kW, a.stage, a.microbatch});
    } else {
      const bool forward = a.kind == ActionKind::kF;
      done.insert({forward ? ActionKind::kF : ActionKind::kI, a.stage, a.microbatch});
      for (const auto& [from, to, seconds] : links) {
        if (from != a.stage || (from < to) != forward) continue;
        made.insert({from, to, a.microbatch});
        if (!with_messages || schedule.rank_of_stage[from] == schedule.rank_of_stage[to])
          there.insert({from, to, a.microbatch});
      }
    }
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < next.size(); ++r) {
      for (; next[r] < schedule.ranks[r].size() && can(schedule.ranks[r][next[r]]); ++next[r], moved = true)
        act(schedule.ranks[r][next[r]]);
    }
  }
  for (size_t r = 0; r < next.size(); ++r) {
    if (next[r] < schedule.ranks[r].size()) return false;
  }
  return true;
}

inline bool IsSound(const Schedule& schedule, const std::vector<StageLink>& links, bool forward_only,
                    bool with_messages) {
  return HoldsEachActionOnce(schedule, links, forward_only, with_messages) && IsInOrder(schedule) &&
         RunsThrough(schedule, links, with_messages);
}

}  // namespace pipec
