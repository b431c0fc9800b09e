#include "compiler/memory/node_order.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "gtest/gtest.h"

namespace pipec {
namespace {

OrderProblem RandomProblem(std::mt19937& random, int nodes) {
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  OrderProblem problem{nodes, std::vector<std::vector<int>>(nodes), {}};
  for (int node = 0; node < nodes; ++node) {
    OrderedTensor tensor{node, {}, pick(1, 20)};
    for (int user = node + 1; user < nodes; ++user) {
      if (pick(0, 3) == 0) tensor.users.push_back(user), problem.after[user].push_back(node);
    }
    if (pick(0, 1) == 0) {
      // In place of an operand of the same size, if there is one.
      for (int t = 0; t < node; ++t) {
        const std::vector<int>& users = problem.tensors[t].users;
        if (std::find(users.begin(), users.end(), node) != users.end()) {
          tensor.in_place_of = t;
          tensor.bytes = problem.tensors[t].bytes;
        }
      }
    }
    problem.tensors.push_back(tensor);
  }
  return problem;
}

bool IsValid(const OrderProblem& problem, const std::vector<int>& order) {
  std::vector<int> position(problem.nodes, -1);
  for (int k = 0; k < static_cast<int>(order.size()); ++k) position[order[k]] = k;
  if (static_cast<int>(order.size()) != problem.nodes) return false;
  for (int node = 0; node < problem.nodes; ++node) {
    if (position[node] < 0) return false;
    for (const int before : problem.after[node]) {
      if (position[before] >= position[node]) return false;
    }
  }
  return true;
}

// By the definition: at each node, what is live. A tensor in place of another takes over its bytes.
int64_t PeakByDefinition(const OrderProblem& problem, const std::vector<int>& order) {
  std::vector<int> position(problem.nodes);
  for (int k = 0; k < problem.nodes; ++k) position[order[k]] = k;
  const auto end = [&](const OrderedTensor& tensor) {
    int last = position[tensor.maker];
    for (const int user : tensor.users) last = std::max(last, position[user]);
    return last;
  };
  int64_t peak = 0;
  for (int k = 0; k < problem.nodes; ++k) {
    int64_t live = 0;
    for (const OrderedTensor& tensor : problem.tensors) {
      if (position[tensor.maker] > k || end(tensor) < k) continue;
      live += tensor.bytes;
      if (tensor.in_place_of >= 0 && position[tensor.maker] == k &&
          end(problem.tensors[tensor.in_place_of]) == k)
        live -= problem.tensors[tensor.in_place_of].bytes;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

TEST(LowPeakOrder, NearTheBestOfAllOrders) {
  std::mt19937 random(1);
  int64_t found = 0, best_of_all = 0, numbered = 0;
  for (int round = 0; round < 300; ++round) {
    const OrderProblem problem = RandomProblem(random, 2 + round % 6);
    std::vector<int> order(problem.nodes);
    std::iota(order.begin(), order.end(), 0);
    numbered += PeakOfOrder(problem, order);
    int64_t best = INT64_MAX;
    do {
      if (!IsValid(problem, order)) continue;
      ASSERT_EQ(PeakOfOrder(problem, order), PeakByDefinition(problem, order));
      best = std::min(best, PeakByDefinition(problem, order));
    } while (std::next_permutation(order.begin(), order.end()));
    const std::vector<int> chosen = LowPeakOrder(problem);
    ASSERT_TRUE(IsValid(problem, chosen));
    EXPECT_GE(PeakOfOrder(problem, chosen), best);
    found += PeakOfOrder(problem, chosen);
    best_of_all += best;
  }
  EXPECT_LE(found, 1.02 * best_of_all);
  EXPECT_GE(numbered, 1.05 * best_of_all);
}

// Branches that grow before they shrink: one after the other, however they were numbered.
TEST(LowPeakOrder, BranchesOneAfterTheOther) {
  const int branches = 8;
  OrderProblem problem{2 * branches + 1, std::vector<std::vector<int>>(2 * branches + 1), {}};
  for (int b = 0; b < branches; ++b) {
    const int grows = b, shrinks = branches + b, end = 2 * branches;
    problem.tensors.push_back({grows, {shrinks}, 1000});
    problem.tensors.push_back({shrinks, {end}, 10});
    problem.after[shrinks] = {grows};
    problem.after[end].push_back(shrinks);
  }
  std::vector<int> numbered(problem.nodes);
  std::iota(numbered.begin(), numbered.end(), 0);
  EXPECT_EQ(PeakOfOrder(problem, numbered), 8010);
  EXPECT_EQ(PeakOfOrder(problem, LowPeakOrder(problem)), 1080);
}

TEST(LowPeakOrder, TheNumberedOrderIfNoneIsBetter) {
  OrderProblem chain{5, {{}, {0}, {1}, {2}, {3}}, {{0, {1}, 5}, {1, {2}, 5}, {2, {3}, 5}, {3, {4}, 5}}};
  EXPECT_EQ(LowPeakOrder(chain), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(LowPeakOrder({3, {{}, {}, {}}, {}}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(LowPeakOrder({}), std::vector<int>());
}

}  // namespace
}  // namespace pipec
