#include "passes/slots.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>

#include "absl/container/flat_hash_map.h"

namespace pipec {
namespace {

// Position of each action by microbatch, -1: not in the list; of a send the last action that begins before the message
// has arrived.
using Positions = absl::flat_hash_map<ActionOf, std::vector<int>>;

// `simulated`: the beginning of the list, or nothing if its times are not known.
Positions Locate(const std::vector<Action>& actions, absl::Span<const SimulatedAction> simulated,
                 int microbatches) {
  Positions positions;
  for (int k = 0; k < static_cast<int>(actions.size()); ++k) {
    const Action& action = actions[k];
    if (action.microbatch < 0) continue;
    std::vector<int>& of_kind = positions[{action.kind, action.stage, action.peer_stage}];
    of_kind.resize(microbatches, -1);
    of_kind[action.microbatch] = k;
    if (action.kind != ActionKind::kSendF && action.kind != ActionKind::kSendB) continue;
    for (int j = k + 1; j < static_cast<int>(simulated.size()); ++j) {
      if (!IsCompute(simulated[j].action.kind)) continue;
      if (simulated[j].start >= simulated[k].end) break;
      of_kind[action.microbatch] = j;
    }
  }
  return positions;
}

// Of a microbatch, in positions of the list: [lower, upper].
struct Life {
  int lower, upper, microbatch;
};

std::vector<Life> LivesOf(const Positions& positions, const std::set<ActionOf>& actions, int microbatches) {
  std::vector<Life> lives;
  for (int m = 0; m < microbatches; ++m) {
    Life life{-1, -1, m};
    for (const ActionOf& action : actions) {
      auto it = positions.find(action);
      if (it == positions.end() || it->second[m] < 0) continue;
      const int position = it->second[m];
      life.lower = life.lower < 0 ? position : std::min(life.lower, position);
      life.upper = std::max(life.upper, position);
    }
    if (life.lower >= 0) lives.push_back(life);
  }
  return lives;
}

class Planner {
 public:
  Planner(const Module& module, int rank)
      : microbatches_(module.schedule.shape.microbatches), training_(module.mode == Mode::kTrain) {
    const absl::Span<const SimulatedAction> simulated = module.simulation.ranks[rank];
    if (training_) train_ = Locate(module.schedule.ranks[rank], simulated, microbatches_);
    eval_ = Locate(module.eval_schedule.ranks[rank],
                   training_ ? absl::Span<const SimulatedAction>() : simulated, microbatches_);
  }

  SlotPlan Plan(absl::Span<const SlotUser> users) {
    for (const SlotUser& user : users) kind_of_.push_back(KindOf(user.actions));
    plan_.pool_of.resize(users.size());
    plan_.class_of.resize(users.size());
    std::vector<int> order(users.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return users[a].stride > users[b].stride; });
    for (const int user : order) Enter(user, users[user].stride);
    for (size_t user = 0; user < users.size(); ++user) {
      const Kinds& kinds = kinds_of_[plan_.pool_of[user]];
      const auto place = std::lower_bound(kinds.begin(), kinds.end(), kind_of_[user]) - kinds.begin();
      plan_.class_of[user] = Joint(kinds).first_class + static_cast<int>(place);
      plan_.pools[plan_.pool_of[user]].slots = Joint(kinds).slots;
    }
    return std::move(plan_);
  }

 private:
  // Users that are touched by the same actions are of one kind; a pool has one user of each of its kinds, ascending.
  using Kinds = std::vector<int>;
  struct Lives {
    std::vector<Life> train, eval;
  };
  struct JointSlots {
    int slots = 0;
    int first_class = -1;  // of the first kind, the others' follow; -1: not made yet
    std::vector<SlotClass> classes;
  };

  int KindOf(const std::set<ActionOf>& actions) {
    const auto [it, added] = kind_index_.emplace(actions, static_cast<int>(lives_.size()));
    if (added) {
      stage_of_kind_.push_back(std::get<1>(*actions.begin()));
      lives_.push_back({LivesOf(train_, actions, microbatches_), LivesOf(eval_, actions, microbatches_)});
    }
    return it->second;
  }

  // Gives a user to the pool where it costs least, or to a new one.
  void Enter(int user, int64_t stride) {
    const int kind = kind_of_[user];
    int best = -1;
    int64_t best_bytes = SlotsOf({kind}) * stride;
    for (const auto& [kinds, pools] : open_) {
      const auto same_stage = [&](int other) { return stage_of_kind_[other] == stage_of_kind_[kind]; };
      if (std::any_of(kinds.begin(), kinds.end(), same_stage)) continue;
      // Users come by size: the last pool of these kinds is the smallest.
      const int64_t bytes = (SlotsOf(With(kinds, kind)) - SlotsOf(kinds)) * plan_.pools[pools.back()].stride;
      if (bytes < best_bytes) best = pools.back(), best_bytes = bytes;
    }
    if (best < 0) {
      best = static_cast<int>(plan_.pools.size());
      plan_.pools.push_back({stride, 0});
      kinds_of_.emplace_back();
    } else {
      std::vector<int>& pools = open_[kinds_of_[best]];
      pools.pop_back();
      if (pools.empty()) open_.erase(kinds_of_[best]);
    }
    kinds_of_[best] = With(kinds_of_[best], kind);
    std::vector<int>& pools = open_[kinds_of_[best]];
    pools.insert(std::upper_bound(pools.begin(), pools.end(), best), best);
    plan_.pool_of[user] = best;
  }

  static Kinds With(Kinds kinds, int kind) {
    kinds.insert(std::upper_bound(kinds.begin(), kinds.end(), kind), kind);
    return kinds;
  }

  int SlotsOf(const Kinds& kinds) { return Assigned(kinds).slots; }

  const JointSlots& Joint(const Kinds& kinds) {
    JointSlots& joint = Assigned(kinds);
    if (joint.first_class < 0) {
      joint.first_class = static_cast<int>(plan_.classes.size());
      for (SlotClass& slot_class : joint.classes) {
        slot_class.slots = joint.slots;
        plan_.classes.push_back(std::move(slot_class));
      }
    }
    return joint;
  }

  JointSlots& Assigned(const Kinds& kinds) {
    const auto [it, added] = joint_.try_emplace(kinds);
    if (added) {
      it->second.classes.resize(kinds.size());
      if (training_) Assign(kinds, &Lives::train, &SlotClass::train, it->second);
      Assign(kinds, &Lives::eval, &SlotClass::eval, it->second);
    }
    return it->second;
  }

  void Assign(const Kinds& kinds, std::vector<Life> Lives::*list, std::vector<int> SlotClass::*table,
              JointSlots& joint) const {
    std::vector<std::pair<Life, int>> lives;  // with the place of its kind
    for (size_t k = 0; k < kinds.size(); ++k) {
      for (const Life& life : lives_[kinds[k]].*list) lives.push_back({life, static_cast<int>(k)});
      (joint.classes[k].*table).resize(microbatches_, 0);
    }
    std::stable_sort(lives.begin(), lives.end(),
                     [](const auto& a, const auto& b) { return a.first.lower < b.first.lower; });
    using End = std::pair<int, int>;  // last position, slot
    std::priority_queue<End, std::vector<End>, std::greater<End>> busy;
    std::set<int> free;
    int used = 0;
    for (const auto& [life, k] : lives) {
      while (!busy.empty() && busy.top().first < life.lower) {
        free.insert(busy.top().second);
        busy.pop();
      }
      if (free.empty()) free.insert(used++);
      const int slot = *free.begin();
      (joint.classes[k].*table)[life.microbatch] = slot;
      free.erase(free.begin());
      busy.push({life.upper, slot});
    }
    joint.slots = std::max({joint.slots, used, 1});
  }

  const int microbatches_;
  const bool training_;
  Positions train_, eval_;
  std::map<std::set<ActionOf>, int> kind_index_;
  std::vector<Lives> lives_;                // by kind
  std::vector<int> stage_of_kind_;          // the first it belongs to
  std::vector<int> kind_of_;                // by user
  std::vector<Kinds> kinds_of_;             // by pool
  std::map<Kinds, std::vector<int>> open_;  // pools by their kinds, ascending
  std::map<Kinds, JointSlots> joint_;
  SlotPlan plan_;
};

}  // namespace

SlotPlan PlanSlots(const Module& module, int rank, absl::Span<const SlotUser> users) {
  return Planner(module, rank).Plan(users);
}

}  // namespace pipec
