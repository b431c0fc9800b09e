// The checker: what splits the backward, what happens once a step, what it says, how long it takes.
#include <algorithm>

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

Case OneFOneB() {
  Case c{*FindSchedule("1f1b")->generate({4, 1, 6}), ChainLinks(4, {{0, 3}, {1, 3}}, 0.25)};
  c.schedule = *AddMessages(c.schedule, c.links, std::vector<StageTimes>(4));
  return c;
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
  Case c = OneFOneB();
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

TEST(CheckSchedule, SumsOverReplicas) {
  Schedule schedule;
  schedule.name = "by hand";
  schedule.shape = {1, 2, 2};
  schedule.rank_of_stage = {0, 0};
  auto check = [&](std::vector<const char*> list) {
    schedule.ranks = {{}};
    for (const char* text : list) schedule.ranks[0].push_back(*ParseAction(text));
    return CheckSchedule(schedule, {}).ok();
  };
  EXPECT_TRUE(check({"0F0", "1F0", "1B0", "0B0", "0F1", "1F1", "1B1", "1REDUCE_GRAD", "0I1", "0W1",
                     "0REDUCE_GRAD", "NORM", "0UPDATE"}));
  // Twice, before the last gradient, between I and W, behind what needs it, of no stage.
  for (const std::vector<const char*>& tail :
       {std::vector<const char*>{"1B1", "1REDUCE_GRAD", "1REDUCE_GRAD", "0I1", "0W1"},
        {"1REDUCE_GRAD", "1B1", "0I1", "0W1"},
        {"1B1", "0I1", "0REDUCE_GRAD", "0W1"},
        {"1B1", "0I1", "0W1", "NORM", "0REDUCE_GRAD"},
        {"1B1", "0I1", "0W1", "0UPDATE", "1REDUCE_GRAD"},
        {"1B1", "0I1", "0W1", "2REDUCE_GRAD"}}) {
    std::vector<const char*> list = {"0F0", "1F0", "1B0", "0B0", "0F1", "1F1"};
    list.insert(list.end(), tail.begin(), tail.end());
    EXPECT_FALSE(check(list)) << tail[1];
  }
}

// With messages in between the grid is that of the lists; a message has its place as a compute action has.
TEST(CheckSchedule, SaysWhereAndDrawsTheLists) {
  Schedule schedule;
  schedule.name = "by hand";
  schedule.shape = {2, 1, 2};
  schedule.rank_of_stage = {0, 1};
  const std::vector<StageLink> links = ChainLinks(2);
  const auto said = [&](const std::vector<std::vector<const char*>>& lists) {
    schedule.ranks.clear();
    for (const auto& list : lists) {
      schedule.ranks.emplace_back();
      for (const char* text : list) schedule.ranks.back().push_back(*ParseAction(text));
    }
    return std::string(CheckSchedule(schedule, links).message());
  };
  const std::vector<const char*> second = {"1RECV_F0", "1F0", "1B0", "1RECV_F1",
                                           "1SEND_B0", "1F1", "1B1", "1SEND_B1"};
  EXPECT_EQ(said({{"0F0", "0SEND_F0", "0F1", "0SEND_F1", "0RECV_B0", "0B0", "0RECV_B1", "0B1"}, second}), "");
  EXPECT_EQ(said({{"0F0", "0SEND_F0", "0SEND_F1", "0F1", "0RECV_B0", "0B0", "0RECV_B1", "0B1"}, second}),
            "schedule by hand: rank 0, position 2, 0SEND_F1: sent before it is made\n"
            "  rank 0:  0F0       0SEND_F0 >0SEND_F1< 0F1       0RECV_B0  0B0       0RECV_B1  0B1\n"
            "  rank 1:  1RECV_F0  1F0       1B0       1RECV_F1  1SEND_B0  1F1       1B1       1SEND_B1");
  EXPECT_EQ(said({{"0F0", "0SEND_F0", "0F1", "0SEND_F1", "0RECV_B0", "0B0", "0B1"}, second}),
            "schedule by hand: rank 0, position 6, 0B1: nobody receives the gradients of microbatch 1 from "
            "stage 1 to "
            "stage 0\n"
            "  rank 0:  0F0       0SEND_F0  0F1       0SEND_F1  0RECV_B0  0B0      >0B1<\n"
            "  rank 1:  1RECV_F0  1F0       1B0       1RECV_F1  1SEND_B0  1F1       1B1       1SEND_B1");
  // Rank 0 sends before rank 1, which sends too, has posted the receive.
  EXPECT_EQ(said({{"0F0", "0SEND_F0", "0F1", "0SEND_F1", "0RECV_B0", "0B0", "0RECV_B1", "0B1"},
                  {"1RECV_F0", "1F0", "1B0", "1SEND_B0", "1RECV_F1", "1F1", "1B1", "1SEND_B1"}}),
            "schedule by hand: ranks wait for each other: rank 0, position 3, 0SEND_F1, for rank 1; rank 1, "
            "position "
            "3, 1SEND_B0, for rank 0\n"
            "  rank 0:  0F0       0SEND_F0  0F1      >0SEND_F1< 0RECV_B0  0B0       0RECV_B1  0B1\n"
            "  rank 1:  1RECV_F0  1F0       1B0      >1SEND_B0< 1RECV_F1  1F1       1B1       1SEND_B1");
}

// Only what is near: six actions on each side, eight ranks.
TEST(CheckSchedule, DrawsOnlyWhatIsNear) {
  Schedule schedule = *FindSchedule("gpipe")->generate({20, 1, 20});
  std::swap(schedule.ranks[10][25], schedule.ranks[10][26]);
  const std::string said(CheckSchedule(schedule, {}).message());
  EXPECT_THAT(said, testing::HasSubstr("rank 10, position 26, 10B5: comes after microbatch 6"));
  EXPECT_THAT(said, testing::HasSubstr("\n  rank 9:   ...    9B0    9B1"));
  EXPECT_THAT(
      said, testing::HasSubstr("\n  rank 10:  ...    10B0   10B1   10B2   10B3   10B4   10B6  >10B5<  10B7"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 17);
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
