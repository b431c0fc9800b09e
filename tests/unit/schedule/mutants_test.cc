// The checker, by mutants: whatever fault is put into any schedule is found, and what only changes the order of
// things that do not depend on each other is let through. Which is which says a second opinion (sound.h).
#include <algorithm>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/schedule.h"
#include "gtest/gtest.h"
#include "tests/unit/schedule/sound.h"

namespace pipec {
namespace {

struct Case {
  Schedule schedule;
  std::vector<StageLink> links;
  bool forward_only;
  bool with_messages;
};

// Every schedule at several shapes, alone and with messages, some of them over stages.
std::vector<Case> Cases(absl::Span<const ScheduleShape> shapes) {
  std::vector<Case> cases;
  for (const ScheduleInfo& info : AllSchedules()) {
    for (const auto& [P, V, M] : shapes) {
      auto compute = info.generate({P, V, M});
      if (!compute.ok() || info.late_updates) continue;  // rounds_test.cc has theirs
      const int S = P * V;
      cases.push_back({*compute, ChainLinks(S, {}, 0, !info.forward_only), info.forward_only, false});
      const std::vector<std::pair<int, int>> skips =
          S > 3 ? std::vector<std::pair<int, int>>{{0, 3}, {1, 3}} : std::vector<std::pair<int, int>>{};
      const auto links = ChainLinks(S, skips, 0.25, !info.forward_only);
      auto with = AddMessages(*compute, links, std::vector<StageTimes>(S));
      EXPECT_TRUE(with.ok()) << with.status();
      if (P > 1) cases.push_back({*std::move(with), links, info.forward_only, true});
    }
  }
  return cases;
}

constexpr ScheduleShape kSmall[] = {{1, 2, 2}, {2, 1, 3}, {2, 2, 4}, {2, 3, 2}, {3, 1, 2}};
constexpr ScheduleShape kLarger[] = {{1, 1, 3}, {1, 2, 2}, {2, 1, 4}, {2, 2, 4},
                                     {3, 1, 5}, {2, 3, 2}, {3, 2, 6}, {4, 1, 3}};

class Mutants : public ::testing::Test {
 protected:
  // What the checker says of it must be what the second opinion says. Returns that.
  bool Judge(const Case& c, const char* what, const Schedule& mutant) {
    const bool sound = IsSound(mutant, c.links, c.forward_only, c.with_messages);
    const absl::Status status = CheckSchedule(mutant, c.with_messages ? c.links : std::vector<StageLink>{});
    EXPECT_EQ(status.ok(), sound) << what << " of " << mutant.name << ", P=" << mutant.shape.ranks
                                  << " V=" << mutant.shape.virtual_stages
                                  << " M=" << mutant.shape.microbatches << ": " << status;
    escaped_ += status.ok() && !sound;
    ++(sound ? legal_ : caught_)[what];
    return sound;
  }

  template <typename Change>
  void MustBeCaught(const Case& c, const char* what, Change change) {
    Schedule mutant = c.schedule;
    change(mutant.ranks);
    EXPECT_FALSE(Judge(c, what, mutant)) << what;
  }

  std::map<std::string, int> legal_, caught_;
  int escaped_ = 0;
};

TEST_F(Mutants, TheSchedulesThemselvesAreSound) {
  for (const Case& c : Cases(kLarger)) EXPECT_TRUE(Judge(c, "none", c.schedule));
}

// One action is taken out, put in, or made another one: never legal.
TEST_F(Mutants, WrongActionsAreCaught) {
  for (const Case& c : Cases(kSmall)) {
    const int P = c.schedule.shape.ranks;
    for (int r = 0; r < P; ++r) {
      for (size_t k = 0; k < c.schedule.ranks[r].size(); ++k) {
        const Action action = c.schedule.ranks[r][k];
        const auto at = [&](auto& ranks) -> Action& { return ranks[r][k]; };
        MustBeCaught(c, "drop", [&](auto& ranks) { ranks[r].erase(ranks[r].begin() + k); });
        MustBeCaught(c, "duplicate", [&](auto& ranks) { ranks[r].insert(ranks[r].begin() + k, action); });
        MustBeCaught(c, "duplicate at the end", [&](auto& ranks) { ranks[r].push_back(action); });
        for (int step : {-1, 1}) {
          MustBeCaught(c, "microbatch", [&](auto& ranks) { at(ranks).microbatch += step; });
          MustBeCaught(c, "stage", [&](auto& ranks) { at(ranks).stage += step; });
          if (IsMessage(action.kind))
            MustBeCaught(c, "peer", [&](auto& ranks) { at(ranks).peer_stage += step; });
        }
        if (IsMessage(action.kind)) {
          MustBeCaught(c, "direction",
                       [&](auto& ranks) { std::swap(at(ranks).stage, at(ranks).peer_stage); });
        }
        for (ActionKind kind :
             {ActionKind::kF, ActionKind::kB, ActionKind::kI, ActionKind::kW, ActionKind::kSendF,
              ActionKind::kRecvF, ActionKind::kSendB, ActionKind::kRecvB}) {
          if (kind != action.kind) MustBeCaught(c, "kind", [&](auto& ranks) { at(ranks).kind = kind; });
        }
        for (int other = 0; other < P; ++other) {
          if (other == r) continue;
          MustBeCaught(c, "another rank", [&](auto& ranks) {
            ranks[r].erase(ranks[r].begin() + k);
            ranks[other].insert(ranks[other].begin() + std::min(k, ranks[other].size()), action);
          });
        }
      }
    }
  }
  EXPECT_EQ(escaped_, 0);
  EXPECT_EQ(caught_.size(), 9);
  for (const auto& [what, count] : caught_) EXPECT_GT(count, 500) << what;
}

// All actions are there; some stand elsewhere in the list of their rank.
TEST_F(Mutants, OtherOrdersAreCaughtExactlyWhereTheyMatter) {
  std::mt19937 random(1);
  for (const Case& c : Cases(kLarger)) {
    for (size_t r = 0; r < c.schedule.ranks.size(); ++r) {
      const size_t n = c.schedule.ranks[r].size();
      for (size_t k = 0; k + 1 < n; ++k) {
        Schedule mutant = c.schedule;
        std::swap(mutant.ranks[r][k], mutant.ranks[r][k + 1]);
        const bool messages = IsMessage(mutant.ranks[r][k].kind) && IsMessage(mutant.ranks[r][k + 1].kind);
        Judge(c, messages ? "swap of messages" : "swap of neighbours", mutant);
      }
      for (size_t round = 0; round < n; ++round) {
        const size_t j = random() % n, k = random() % n;
        if (j == k) continue;
        Schedule mutant = c.schedule;
        std::swap(mutant.ranks[r][j], mutant.ranks[r][k]);
        Judge(c, "swap", mutant);
        mutant = c.schedule;
        auto& list = mutant.ranks[r];
        const Action moved = list[j];
        list.erase(list.begin() + j);
        list.insert(list.begin() + k, moved);
        Judge(c, "shift", mutant);
      }
    }
  }
  EXPECT_EQ(escaped_, 0);
  for (const char* what : {"swap of neighbours", "swap of messages", "swap", "shift"}) {
    EXPECT_GT(caught_[what], 20) << what;
    EXPECT_GT(legal_[what], 100) << what;
  }
}

// Two faults at once do not make up for each other.
TEST_F(Mutants, TwoFaultsAtOnce) {
  std::mt19937 random(2);
  for (const Case& c : Cases(kLarger)) {
    for (int round = 0; round < 60; ++round) {
      Schedule mutant = c.schedule;
      for (int fault = 0; fault < 2; ++fault) {
        auto& list = mutant.ranks[random() % mutant.ranks.size()];
        if (list.empty()) continue;
        const size_t j = random() % list.size(), k = random() % list.size();
        switch (random() % 5) {
          case 0:
            std::swap(list[j], list[k]);
            break;
          case 1:
            list.insert(list.begin() + k, Action(list[j]));
            break;
          case 2:
            list.erase(list.begin() + j);
            break;
          case 3:
            list[j].microbatch = static_cast<int>(random() % mutant.shape.microbatches);
            break;
          case 4:
            list[j].stage = static_cast<int>(random() % mutant.shape.stages());
            break;
        }
      }
      Judge(c, "two faults", mutant);
    }
  }
  EXPECT_EQ(escaped_, 0);
  EXPECT_GT(caught_["two faults"], 1000);
}

}  // namespace
}  // namespace pipec
