// The checker, by mutants: every fault that is put into a good schedule must be found.
#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/schedule/rendezvous.h"

namespace pipec {
namespace {

struct Case {
  Schedule schedule;
  std::vector<StageLink> links;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (auto [name, P, V, M] :
       {std::tuple("gpipe", 3, 1, 4), std::tuple("1f1b", 4, 1, 6), std::tuple("1f1b", 1, 1, 1),
        std::tuple("interleaved", 2, 2, 4), std::tuple("infer", 3, 2, 4)}) {
    const ScheduleInfo* info = FindSchedule(name);
    const int S = P * V;
    const std::vector<std::pair<int, int>> skips =
        S > 3 ? std::vector<std::pair<int, int>>{{0, 3}, {1, 3}} : std::vector<std::pair<int, int>>{};
    Case c{*info->generate({P, V, M}), ChainLinks(S, skips, 0.25, !info->forward_only)};
    c.schedule = *AddMessages(c.schedule, c.links, std::vector<StageTimes>(S));
    cases.push_back(c);
  }
  return cases;
}

// Whether a schedule with every action there once is legal: microbatch order of each stage and kind, messages
// after what makes them and before what needs them, all of it judged by position, and the lists complete with
// blocking sends.
bool Legal(const Schedule& schedule, const std::vector<StageLink>& links) {
  for (const auto& list : schedule.ranks) {
    for (size_t j = 0; j < list.size(); ++j) {
      for (size_t k = j + 1; k < list.size(); ++k) {
        const Action &a = list[j], &b = list[k];  // a comes first
        if (a.stage != b.stage) continue;
        if (IsCompute(a.kind) && a.kind == b.kind && a.microbatch > b.microbatch) return false;
        if (a.microbatch != b.microbatch) continue;
        const bool backward_first = a.kind == ActionKind::kB && b.kind == ActionKind::kF;
        const bool sent_first = (a.kind == ActionKind::kSendF && b.kind == ActionKind::kF) ||
                                (a.kind == ActionKind::kSendB && b.kind == ActionKind::kB);
        const bool used_first = (a.kind == ActionKind::kF && b.kind == ActionKind::kRecvF) ||
                                (a.kind == ActionKind::kB && b.kind == ActionKind::kRecvB);
        if (backward_first || sent_first || used_first) return false;
      }
    }
  }
  return RunRendezvous(schedule, links).completes;
}

TEST(CheckSchedule, SwapsAreCaughtExactlyWhenIllegal) {
  int legal = 0, illegal = 0;
  for (const Case& c : Cases()) {
    for (size_t r = 0; r < c.schedule.ranks.size(); ++r) {
      const size_t n = c.schedule.ranks[r].size();
      for (size_t j = 0; j < n; ++j) {
        for (size_t k = j + 1; k < n; ++k) {
          Schedule mutant = c.schedule;
          std::swap(mutant.ranks[r][j], mutant.ranks[r][k]);
          const bool is_legal = Legal(mutant, c.links);
          const absl::Status status = CheckSchedule(mutant, c.links);
          EXPECT_EQ(status.ok(), is_legal)
              << mutant.name << " rank " << r << " positions " << j << " " << k << " " << status;
          ++(is_legal ? legal : illegal);
        }
      }
    }
  }
  EXPECT_GT(legal, 10);
  EXPECT_GT(illegal, 1000);
}

TEST(CheckSchedule, DropDuplicateShiftAndWrongRankAreCaught) {
  for (const Case& c : Cases()) {
    ASSERT_TRUE(CheckSchedule(c.schedule, c.links).ok()) << CheckSchedule(c.schedule, c.links);
    const int P = c.schedule.shape.ranks;
    for (int r = 0; r < P; ++r) {
      for (size_t k = 0; k < c.schedule.ranks[r].size(); ++k) {
        const Action action = c.schedule.ranks[r][k];
        auto caught = [&](const char* what, auto change) {
          Schedule mutant = c.schedule;
          change(mutant.ranks[r]);
          EXPECT_FALSE(CheckSchedule(mutant, c.links).ok())
              << what << " " << mutant.name << " rank " << r << " position " << k << " " << ToString(action);
        };
        caught("drop", [&](auto& list) { list.erase(list.begin() + k); });
        caught("duplicate", [&](auto& list) { list.insert(list.begin() + k, action); });
        caught("next microbatch", [&](auto& list) { ++list[k].microbatch; });
        caught("previous microbatch", [&](auto& list) { --list[k].microbatch; });
        caught("next stage", [&](auto& list) { ++list[k].stage; });
        caught("previous stage", [&](auto& list) { --list[k].stage; });
        if (IsMessage(action.kind)) {
          caught("next peer", [&](auto& list) { ++list[k].peer_stage; });
          caught("previous peer", [&](auto& list) { --list[k].peer_stage; });
        }
        for (ActionKind kind :
             {ActionKind::kF, ActionKind::kB, ActionKind::kI, ActionKind::kW, ActionKind::kSendF,
              ActionKind::kRecvF, ActionKind::kSendB, ActionKind::kRecvB}) {
          if (kind != action.kind) caught("kind", [&](auto& list) { list[k].kind = kind; });
        }
        for (int other = 0; other < P; ++other) {
          if (other == r) continue;
          Schedule mutant = c.schedule;
          mutant.ranks[r].erase(mutant.ranks[r].begin() + k);
          mutant.ranks[other].push_back(action);
          EXPECT_FALSE(CheckSchedule(mutant, c.links).ok()) << "wrong rank " << ToString(action);
        }
      }
    }
  }
}

TEST(CheckSchedule, SplitBackward) {
  Schedule schedule;
  schedule.name = "by hand";
  schedule.shape = {1, 1, 2};
  schedule.rank_of_stage = {0};
  auto check = [&](std::vector<const char*> list) {
    schedule.ranks = {{}};
    for (const char* text : list) schedule.ranks[0].push_back(*ParseAction(text));
    return CheckSchedule(schedule, {}).ok();
  };
  EXPECT_TRUE(check({"0F0", "0I0", "0F1", "0I1", "0W0", "0W1"}));
  EXPECT_TRUE(check({"0F0", "0B0", "0F1", "0I1", "0W1"}));
  EXPECT_FALSE(check({"0F0", "0W0", "0I0", "0F1", "0I1", "0W1"}));  // W before its I
  EXPECT_FALSE(check({"0F0", "0I0", "0F1", "0I1", "0W1", "0W0"}));  // W out of order
  EXPECT_FALSE(check({"0F0", "0F1", "0I1", "0B0", "0W1"}));         // I1 before the I of B0
  EXPECT_FALSE(check({"0F0", "0I0", "0F1", "0I1", "0W0"}));         // a W missing
  EXPECT_FALSE(check({"0F0", "0I0", "0B0", "0W0", "0F1", "0B1"}));  // B and I
}

TEST(CheckSchedule, OnceAStep) {
  Case c = Cases()[1];
  for (auto& list : c.schedule.ranks) {
    list.push_back({ActionKind::kReduceTied});
    list.push_back({ActionKind::kNorm});
    list.push_back({ActionKind::kUpdate, list[0].stage});
  }
  EXPECT_TRUE(CheckSchedule(c.schedule, c.links).ok()) << CheckSchedule(c.schedule, c.links);
  const size_t last = c.schedule.ranks[0].size() - 1;
  auto caught = [&](auto change) {
    Schedule mutant = c.schedule;
    change(mutant.ranks[0]);
    EXPECT_FALSE(CheckSchedule(mutant, c.links).ok());
  };
  caught([&](auto& list) { list.erase(list.begin() + last - 1); });        // norms on three ranks
  caught([&](auto& list) { std::swap(list[last], list[last - 1]); });      // update before the norm
  caught([&](auto& list) { std::swap(list[last - 1], list[last - 2]); });  // norm before the sum
  caught([&](auto& list) { std::swap(list[last - 2], list[last - 3]); });  // sum before the last microbatch
  caught([&](auto& list) { list.push_back(list[last]); });                 // twice
  caught([&](auto& list) { list[last].stage = 1; });                       // another rank's stage
}

TEST(CheckSchedule, SaysWhere) {
  Case c = Cases()[1];
  Schedule mutant = c.schedule;
  std::swap(mutant.ranks[0][0], mutant.ranks[0][2]);
  EXPECT_THAT(std::string(CheckSchedule(mutant, c.links).message()), testing::HasSubstr("rank 0, position"));
}

// Thousands of actions in milliseconds: 32 stages of 128 microbatches with skips; guards against a quadratic
// walk, which would take minutes.
TEST(CheckSchedule, LargeSchedules) {
  for (auto [name, P, V] : {std::tuple("1f1b", 32, 1), std::tuple("interleaved", 8, 4)}) {
    const int S = P * V;
    std::vector<std::pair<int, int>> skips;
    for (int to = 2; to < S; ++to) skips.push_back({0, to});
    const auto links = ChainLinks(S, skips, 0.1);
    auto schedule =
        AddMessages(*FindSchedule(name)->generate({P, V, 128}), links, std::vector<StageTimes>(S));
    ASSERT_TRUE(schedule.ok());
    EXPECT_TRUE(CheckSchedule(*schedule, links).ok());
    EXPECT_TRUE(Simulate(*schedule, links, std::vector<StageTimes>(S)).ok());
  }
}

}  // namespace
}  // namespace pipec
