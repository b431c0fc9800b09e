// Where sums over replicas stand: behind the last gradient of their stage, beside the messages.
#include "absl/strings/str_cat.h"
#include "compiler/schedule/schedule.h"
#include "gtest/gtest.h"
#include "tests/unit/schedule/rendezvous.h"

namespace pipec {
namespace {

std::vector<std::string> Lists(const Schedule& schedule) {
  std::vector<std::string> lists;
  for (const auto& list : schedule.ranks) {
    std::string& text = lists.emplace_back();
    for (const Action& action : list) absl::StrAppend(&text, text.empty() ? "" : " ", ToString(action));
  }
  return lists;
}

// Stage 1 has nothing to add up.
TEST(PlaceReductions, FollowTheLastGradientOfTheirStage) {
  Schedule schedule = *FindSchedule("1f1b")->generate({3, 1, 2});
  PlaceReductions({true, false, true}, schedule);
  EXPECT_EQ(Lists(schedule), (std::vector<std::string>{"0F0 0F1 0B0 0B1 0REDUCE_GRAD", "1F0 1F1 1B0 1B1",
                                                       "2F0 2B0 2F1 2B1 2REDUCE_GRAD"}));
}

// The sum of a later stage of the rank is under way while its earlier one goes back.
TEST(PlaceReductions, OverlapTheCoolDownOfTheirRank) {
  Schedule schedule = *FindSchedule("interleaved")->generate({2, 2, 2});
  PlaceReductions(std::vector<bool>(4, true), schedule);
  EXPECT_EQ(Lists(schedule),
            (std::vector<std::string>{"0F0 0F1 2F0 2F1 2B0 2B1 2REDUCE_GRAD 0B0 0B1 0REDUCE_GRAD",
                                      "1F0 1F1 3F0 3B0 3F1 3B1 3REDUCE_GRAD 1B0 1B1 1REDUCE_GRAD"}));
}

// With W apart it is the last W; every schedule stays sound with messages, and has one sum a stage.
TEST(PlaceReductions, EverySchedule) {
  for (const ScheduleInfo& info : AllSchedules()) {
    if (info.forward_only || info.late_updates) continue;
    const int V = info.default_virtual_stages, S = 4 * V;
    const std::vector<StageLink> links = ChainLinks(S);
    Schedule schedule = *AddMessages(*info.generate({4, V, 8}), links, std::vector<StageTimes>(S));
    PlaceReductions(std::vector<bool>(S, true), schedule);
    EXPECT_TRUE(CheckSchedule(schedule, links).ok()) << info.name << CheckSchedule(schedule, links);
    for (int stage = 0; stage < S; ++stage) {
      const std::vector<Action>& list = schedule.ranks[schedule.rank_of_stage[stage]];
      int sums = 0, gradients = 0;
      for (const Action& action : list) {
        if (action.stage != stage) continue;
        gradients += action.kind == ActionKind::kB || action.kind == ActionKind::kW;
        if (action.kind != ActionKind::kReduceGrad) continue;
        ++sums;
        EXPECT_EQ(gradients, 8) << info.name << ", stage " << stage;
      }
      EXPECT_EQ(sums, 1) << info.name << ", stage " << stage;
    }
  }
}

}  // namespace
}  // namespace pipec
