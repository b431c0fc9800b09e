#include "runtime/executor/waits.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace pipec {
namespace {

using plan::Action;
using plan::RankPlan;

// Sorted, without overlap.
std::vector<Region> Merge(std::vector<Region> regions) {
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) { return a.begin < b.begin; });
  std::vector<Region> merged;
  for (const Region& region : regions) {
    if (region.begin == region.end) continue;
    if (merged.empty() || region.begin > merged.back().end) {
      merged.push_back(region);
    } else {
      merged.back().end = std::max(merged.back().end, region.end);
    }
  }
  return merged;
}

bool Touches(const std::vector<Region>& merged, const std::vector<Region>& regions) {
  for (const Region& region : regions) {
    auto it = std::lower_bound(merged.begin(), merged.end(), region,
                               [](const Region& a, const Region& b) { return a.end <= b.begin; });
    if (it != merged.end() && Overlap(*it, region)) return true;
  }
  return false;
}

// The distinct tensors a program reads and writes.
struct Operands {
  std::set<int> reads, writes;
};

Operands OperandsOf(const plan::Program& program, StepKind kind) {
  Operands operands;
  for (const plan::Instruction& instruction : program.instructions()) {
    if (instruction.eval_only() && kind == StepKind::kTrain) continue;
    operands.reads.insert(instruction.inputs().begin(), instruction.inputs().end());
    operands.writes.insert(instruction.outputs().begin(), instruction.outputs().end());
  }
  operands.reads.erase(-1);
  operands.writes.erase(-1);
  return operands;
}

class Planner {
 public:
  Planner(const RankPlan& rank_plan, StepKind kind) : plan_(rank_plan), kind_(kind) {
    for (const plan::Program& program : plan_.programs()) operands_.push_back(OperandsOf(program, kind));
  }

  ListPlan Run() {
    const auto& actions = ActionsOf(plan_, kind_);
    list_.actions.resize(actions.size());
    PlacePorts();
    int lag = 0;
    for (int i = 0; i < actions.size(); ++i) {
      lag = std::max(lag, static_cast<int>(actions[i].lag()));
      for (int m : InOneOrder(actions[i])) {
        list_.actions[i].exchanges.push_back(static_cast<int>(list_.exchanges.size()));
        list_.exchanges.push_back({i, m});
      }
      if (actions[i].kind() == plan::REDUCE_GRAD) {
        list_.actions[i].exchanges.push_back(static_cast<int>(list_.exchanges.size()));
        list_.exchanges.push_back({i, -1});
      }
    }
    // In the last of these rounds everything is under way that ever is.
    const int rounds = kind_ == StepKind::kTrain && plan_.asynchronous() ? 2 * lag + 3 : 1;
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < actions.size(); ++i) Visit(i, actions[i], round + lag - static_cast<int>(actions[i].lag()));
    }
    return std::move(list_);
  }

 private:
  struct Pending {
    int exchange;
    bool sends;
    std::vector<Region> regions;
  };

  // What all ranks exchange at once, by sender and receiver: the same order everywhere, so that it completes even
  // where every message waits for the one before.
  std::vector<int> InOneOrder(const Action& action) const {
    std::vector<int> messages(action.messages().begin(), action.messages().end());
    const auto ranks = [&](int m) {
      const plan::Message& message = plan_.messages(m);
      return message.sends() ? std::pair(plan_.rank(), message.peer_rank())
                             : std::pair(message.peer_rank(), plan_.rank());
    };
    std::stable_sort(messages.begin(), messages.end(), [&](int a, int b) { return ranks(a) < ranks(b); });
    return messages;
  }

  std::vector<Region> Regions(const std::set<int>& tensors, const Moment& moment) const {
    std::vector<Region> regions;
    regions.reserve(tensors.size());
    for (int tensor : tensors) regions.push_back(RegionOf(plan_, tensor, moment));
    return regions;
  }

  // All tensors that the action reads or writes, messages and ports included.
  Operands AllOperands(int index, const Action& action) const {
    Operands all;
    if (action.program() >= 0) all = operands_[action.program()];
    for (uint32_t m : action.messages()) {
      const plan::Message& message = plan_.messages(m);
      std::set<int>& set = message.sends() ? all.reads : all.writes;
      set.insert(message.tensors().begin(), message.tensors().end());
    }
    all.writes.insert(action.sums().begin(), action.sums().end());
    for (int port : list_.actions[index].feeds) all.writes.insert(plan_.inputs(port).tensor());
    for (int port : list_.actions[index].deliveries) all.reads.insert(plan_.outputs(port).tensor());
    return all;
  }

  void Visit(int index, const Action& action, int step) {
    ActionPlan& row = list_.actions[index];
    const Moment moment{kind_, action.microbatch(), step};
    row.waits.clear();
    if (!pending_.empty()) {
      const Operands operands = AllOperands(index, action);
      const std::vector<Region> writes = Merge(Regions(operands.writes, moment));
      const std::vector<Region> reads = Merge(Regions(operands.reads, moment));
      std::erase_if(pending_, [&](const Pending& pending) {
        const bool again = list_.exchanges[pending.exchange].action == index;
        const bool wait = again || Touches(writes, pending.regions) ||
                          (!pending.sends && Touches(reads, pending.regions));
        if (wait) row.waits.push_back(pending.exchange);
        return wait;
      });
    }
    if (EndsWithItsAction(plan_, action)) return;
    for (int exchange : row.exchanges) {
      if (list_.exchanges[exchange].message < 0) {
        const std::set<int> tensors(action.sums().begin(), action.sums().end());
        pending_.push_back({exchange, false, Regions(tensors, moment)});
        continue;
      }
      const plan::Message& message = plan_.messages(list_.exchanges[exchange].message);
      const std::set<int> tensors(message.tensors().begin(), message.tensors().end());
      pending_.push_back({exchange, message.sends(), Regions(tensors, moment)});
    }
  }

  bool Reads(const Action& action, int tensor) const {
    for (uint32_t m : action.messages()) {
      if (!plan_.messages(m).sends()) continue;
      for (uint32_t sent : plan_.messages(m).tensors()) {
        if (ShareBytes(plan_, sent, tensor)) return true;
      }
    }
    return action.program() >= 0 && AnyShares(operands_[action.program()].reads, tensor);
  }
  bool AnyShares(const std::set<int>& tensors, int tensor) const {
    return std::any_of(tensors.begin(), tensors.end(), [&](int t) { return ShareBytes(plan_, t, tensor); });
  }

  // An input goes before the first action of its microbatch that reads it, an output after the last that
  // writes it (after the last F of the microbatch if none does: it is an input or a parameter).
  void PlacePorts() {
    const auto& actions = ActionsOf(plan_, kind_);
    std::vector<int> order(actions.size());  // of a step
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return actions[a].lag() < actions[b].lag(); });
    // Whether an action reads or writes a port depends on its program or message only; many actions share
    // one.
    auto place = [&](int port, bool input, const std::vector<bool>& hit) {
      std::vector<int> found(plan_.microbatches(), -1), fallback(plan_.microbatches(), -1);
      for (int i : order) {
        const int m = actions[i].microbatch();
        if (m < 0) continue;
        if (actions[i].kind() == plan::F) fallback[m] = i;
        if (hit[i] && (!input || found[m] < 0)) found[m] = i;
      }
      for (size_t m = 0; m < found.size(); ++m) {
        const int at = found[m] >= 0 || input ? found[m] : fallback[m];
        if (at < 0) continue;
        (input ? list_.actions[at].feeds : list_.actions[at].deliveries).push_back(port);
      }
    };
    for (int port = 0; port < plan_.inputs_size(); ++port) {
      place(port, true,
            Hits([&](const Action& action) { return Reads(action, plan_.inputs(port).tensor()); }));
    }
    if (kind_ == StepKind::kTrain) return;
    for (int port = 0; port < plan_.outputs_size(); ++port) {
      place(port, false, Hits([&](const Action& action) {
              return action.program() >= 0 &&
                     AnyShares(operands_[action.program()].writes, plan_.outputs(port).tensor());
            }));
    }
  }

  template <typename Predicate>
  std::vector<bool> Hits(Predicate predicate) const {
    const auto& actions = ActionsOf(plan_, kind_);
    std::vector<int> of_program(plan_.programs_size(), -1);  // -1: not known yet
    std::vector<bool> hits(actions.size());
    for (int i = 0; i < actions.size(); ++i) {
      if (actions[i].program() < 0) {
        hits[i] = predicate(actions[i]);
        continue;
      }
      int& known = of_program[actions[i].program()];
      if (known < 0) known = predicate(actions[i]);
      hits[i] = known;
    }
    return hits;
  }

  const RankPlan& plan_;
  StepKind kind_;
  std::vector<Operands> operands_;
  std::vector<Pending> pending_;
  ListPlan list_;
};

}  // namespace

bool EndsWithItsAction(const RankPlan& rank_plan, const Action& action) {
  return (action.kind() == plan::NORM || action.kind() == plan::REDUCE_TIED) && !rank_plan.asynchronous();
}

ListPlan PlanList(const RankPlan& rank_plan, StepKind kind) { return Planner(rank_plan, kind).Run(); }

}  // namespace pipec
