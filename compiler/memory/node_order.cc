#include "compiler/memory/node_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <tuple>

namespace pipec {
namespace {

struct Change {
  int64_t during = 0;  // bytes beyond those live before, while the node runs
  int64_t after = 0;   // and when it has run
};

// The bytes of a problem while its nodes run one after the other.
class Live {
 public:
  explicit Live(const OrderProblem& problem) : problem_(problem), left_(problem.tensors.size()) {
    made_.resize(problem.nodes);
    used_.resize(problem.nodes);
    for (int t = 0; t < static_cast<int>(problem.tensors.size()); ++t) {
      const OrderedTensor& tensor = problem.tensors[t];
      left_[t] = static_cast<int>(tensor.users.size());
      made_[tensor.maker].push_back(t);
      for (const int user : tensor.users) used_[user].push_back(t);
    }
  }

  Change ChangeBy(int node) const {
    Change change;
    for (const int t : made_[node]) {
      const OrderedTensor& tensor = problem_.tensors[t];
      change.during += tensor.bytes;
      if (TakesPlace(tensor, node)) change.during -= problem_.tensors[tensor.in_place_of].bytes;
      if (!tensor.users.empty()) change.after += tensor.bytes;
    }
    for (const int t : used_[node]) {
      if (left_[t] == 1) change.after -= problem_.tensors[t].bytes;
    }
    return change;
  }

  Change Run(int node) {
    const Change change = ChangeBy(node);
    for (const int t : used_[node]) --left_[t];
    return change;
  }

 private:
  bool TakesPlace(const OrderedTensor& tensor, int node) const {
    if (tensor.in_place_of < 0 || left_[tensor.in_place_of] != 1) return false;
    const std::vector<int>& used = used_[node];
    return std::find(used.begin(), used.end(), tensor.in_place_of) != used.end();
  }

  const OrderProblem& problem_;
  std::vector<std::vector<int>> made_, used_;  // tensors by node
  std::vector<int> left_;                      // by tensor: users that have not run
};

enum class Rule { kAfter, kDuring };

// List scheduling: of the nodes that can run, the one with the least bytes by the rule; a node that frees bytes only
// with the next one counts with it.
std::vector<int> ListSchedule(const OrderProblem& problem, Rule rule) {
  const int n = problem.nodes;
  std::vector<int> missing(n, 0);
  std::vector<std::vector<int>> before(n);
  for (int node = 0; node < n; ++node) {
    missing[node] = static_cast<int>(problem.after[node].size());
    for (const int earlier : problem.after[node]) before[earlier].push_back(node);
  }
  std::set<int> ready;
  for (int node = 0; node < n; ++node) {
    if (missing[node] == 0) ready.insert(node);
  }
  Live live(problem);
  std::vector<int> order;
  while (!ready.empty()) {
    int best = -1;
    std::tuple<int64_t, int64_t, int> best_key;
    for (const int node : ready) {
      const Change change = live.ChangeBy(node);
      int64_t after = change.after;
      for (const int next : before[node]) {
        if (missing[next] == 1) after = std::min(after, change.after + live.ChangeBy(next).after);
      }
      const auto key = rule == Rule::kAfter ? std::tuple(after, change.during, node)
                                            : std::tuple(std::max(change.during, after), after, node);
      if (best < 0 || key < best_key) best = node, best_key = key;
    }
    live.Run(best);
    ready.erase(best);
    order.push_back(best);
    for (const int next : before[best]) {
      if (--missing[next] == 0) ready.insert(next);
    }
  }
  return order;
}

// The same from the end: of the nodes whose users are all placed, the one that leaves the least bytes live in front of
// it, tensors being live from their last user, which is placed first, to their maker.
std::vector<int> ListScheduleBackwards(const OrderProblem& problem) {
  const int n = problem.nodes;
  std::vector<int> users_left(n, 0);
  for (const std::vector<int>& earlier : problem.after) {
    for (const int node : earlier) ++users_left[node];
  }
  std::vector<std::vector<int>> made(n), used(n);
  for (int t = 0; t < static_cast<int>(problem.tensors.size()); ++t) {
    made[problem.tensors[t].maker].push_back(t);
    for (const int user : problem.tensors[t].users) used[user].push_back(t);
  }
  std::set<int, std::greater<int>> ready;
  for (int node = 0; node < n; ++node) {
    if (users_left[node] == 0) ready.insert(node);
  }
  std::vector<char> live(problem.tensors.size(), 0);
  std::vector<int> order;
  while (!ready.empty()) {
    int best = -1;
    int64_t least = 0;
    for (const int node : ready) {
      int64_t change = 0;
      for (const int t : used[node]) change += live[t] ? 0 : problem.tensors[t].bytes;
      for (const int t : made[node]) change -= live[t] ? problem.tensors[t].bytes : 0;
      if (best < 0 || change < least) best = node, least = change;
    }
    for (const int t : used[best]) live[t] = 1;
    for (const int t : made[best]) live[t] = 0;
    ready.erase(best);
    order.push_back(best);
    for (const int earlier : problem.after[best]) {
      if (--users_left[earlier] == 0) ready.insert(earlier);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

int64_t PeakOfOrder(const OrderProblem& problem, const std::vector<int>& order) {
  Live live(problem);
  int64_t now = 0, peak = 0;
  for (const int node : order) {
    const Change change = live.Run(node);
    peak = std::max(peak, now + std::max(change.during, change.after));
    now += change.after;
  }
  return peak;
}

std::vector<int> LowPeakOrder(const OrderProblem& problem) {
  std::vector<int> best(problem.nodes);
  std::iota(best.begin(), best.end(), 0);
  int64_t best_peak = PeakOfOrder(problem, best);
  for (std::vector<int> order : {ListSchedule(problem, Rule::kAfter), ListSchedule(problem, Rule::kDuring),
                                 ListScheduleBackwards(problem)}) {
    const int64_t peak = PeakOfOrder(problem, order);
    if (peak < best_peak) best = std::move(order), best_peak = peak;
  }
  return best;
}

}  // namespace pipec
