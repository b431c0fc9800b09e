// A second opinion on whether lists of actions complete: every send blocks until the peer has posted the
// receive and every compute action until what it needs has been sent. Runs rank by rank, one action at a
// time, and knows nothing of the code under test.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "compiler/schedule/schedule.h"

namespace pipec {

struct RendezvousResult {
  bool completes = false;
  int most_buffers = 0;  // received and not yet consumed, over links between stages, by position in the list
};

inline RendezvousResult RunRendezvous(const Schedule& schedule, const std::vector<StageLink>& links) {
  using Key = std::tuple<int, int, int>;  // from stage, to stage, microbatch
  std::set<Key> posted, sent, made;
  std::map<std::pair<int, int>, int> buffers;
  std::vector<size_t> next(schedule.ranks.size(), 0);
  RendezvousResult result;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < schedule.ranks.size(); ++r) {
      if (next[r] == schedule.ranks[r].size()) continue;
      const Action& a = schedule.ranks[r][next[r]];
      const bool send = a.kind == ActionKind::kSendF || a.kind == ActionKind::kSendB;
      bool can = true;
      if (send) {
        can = made.count({a.stage, a.peer_stage, a.microbatch}) &&
              posted.count({a.stage, a.peer_stage, a.microbatch});
        if (can) sent.insert({a.stage, a.peer_stage, a.microbatch});
      } else if (IsMessage(a.kind)) {
        posted.insert({a.peer_stage, a.stage, a.microbatch});
        result.most_buffers = std::max(result.most_buffers, ++buffers[{a.peer_stage, a.stage}]);
      } else if (a.kind != ActionKind::kW) {
        const bool forward = a.kind == ActionKind::kF;
        for (const StageLink& link : links) {
          if (link.to_stage != a.stage || (link.from_stage < link.to_stage) != forward) continue;
          const Key key{link.from_stage, link.to_stage, a.microbatch};
          const bool local = schedule.rank_of_stage[link.from_stage] == schedule.rank_of_stage[link.to_stage];
          can &= (local ? made : sent).count(key) > 0;
        }
        if (can) {
          for (const StageLink& link : links) {
            if ((link.from_stage < link.to_stage) != forward) continue;
            if (link.from_stage == a.stage) made.insert({link.from_stage, link.to_stage, a.microbatch});
            if (link.to_stage == a.stage) --buffers[{link.from_stage, link.to_stage}];
          }
        }
      }
      if (!can) continue;
      ++next[r];
      moved = true;
    }
  }
  result.completes = true;
  for (size_t r = 0; r < schedule.ranks.size(); ++r) result.completes &= next[r] == schedule.ranks[r].size();
  return result;
}

// Neighbours both ways, and activations over the given skips with their gradients.
inline std::vector<StageLink> ChainLinks(int stages, const std::vector<std::pair<int, int>>& skips = {},
                                         double seconds = 0, bool backward = true) {
  std::vector<StageLink> links;
  for (int s = 0; s + 1 < stages; ++s) links.push_back({s, s + 1, seconds});
  for (auto [from, to] : skips) links.push_back({from, to, seconds});
  const size_t forward = links.size();
  for (size_t l = 0; backward && l < forward; ++l)
    links.push_back({links[l].to_stage, links[l].from_stage, seconds});
  return links;
}

}  // namespace pipec
