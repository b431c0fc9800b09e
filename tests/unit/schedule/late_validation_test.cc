// Where a step that updates ahead of the norms is validated in the next: as late as it can be, and not later.
#include "compiler/schedule/late_validation.h"

#include <map>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<StageLink> Links(int stages, bool skips) {
  std::vector<StageLink> links;
  for (int from = 0; from < stages; ++from) {
    for (int to = from + 1; to < stages; ++to) {
      if (to > from + 1 && !skips) continue;
      links.push_back({from, to});
      links.push_back({to, from});
    }
  }
  return links;
}

Schedule WithMessages(const ScheduleInfo& info, int ranks, int microbatches, bool skips) {
  const auto schedule = info.generate({ranks, info.default_virtual_stages, microbatches});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  const int stages = schedule->shape.stages();
  auto placed = AddMessages(*schedule, Links(stages, skips), std::vector<StageTimes>(stages));
  EXPECT_TRUE(placed.ok()) << placed.status();
  return *placed;
}

// The definition, read off the lists: nothing but forward actions of such stages is in front, and of every message both
// ends or none are.
bool Allowed(const Schedule& schedule, const std::vector<bool>& repeats, const std::vector<int>& at) {
  std::map<std::string, int> ends;
  for (size_t r = 0; r < at.size(); ++r) {
    for (int k = 0; k < at[r]; ++k) {
      const Action& a = schedule.ranks[r][k];
      if (a.kind == ActionKind::kF ? !repeats[a.stage]
                                   : a.kind != ActionKind::kSendF && a.kind != ActionKind::kRecvF)
        return false;
      if (a.kind == ActionKind::kSendF) ++ends[absl::StrCat(a.stage, ">", a.peer_stage, " ", a.microbatch)];
      if (a.kind == ActionKind::kRecvF) ++ends[absl::StrCat(a.peer_stage, ">", a.stage, " ", a.microbatch)];
    }
  }
  for (const auto& [message, count] : ends) {
    if (count != 2) return false;
  }
  return true;
}

int ForwardActions(const std::vector<Action>& list) {
  int forward = 0;
  while (forward < static_cast<int>(list.size()) && list[forward].kind != ActionKind::kB &&
         list[forward].kind != ActionKind::kI)
    ++forward;
  return forward;
}

// Of all allowed places those with most in front: two of them together are allowed as well, so there is one such.
std::vector<int> ByTryingAll(const Schedule& schedule, const std::vector<bool>& repeats) {
  std::vector<int> at(schedule.ranks.size(), 0), best = at, most;
  for (const auto& list : schedule.ranks) most.push_back(ForwardActions(list));
  for (size_t r = 0; r < at.size();) {
    if (Allowed(schedule, repeats, at) &&
        std::accumulate(at.begin(), at.end(), 0) > std::accumulate(best.begin(), best.end(), 0))
      best = at;
    for (r = 0; r < at.size() && at[r] == most[r]; ++r) at[r] = 0;
    if (r < at.size()) ++at[r];
  }
  return std::accumulate(best.begin(), best.end(), 0) > 0 ? best : std::vector<int>();
}

TEST(LateValidation, IsTheLatestPlace) {
  int found = 0;
  for (const ScheduleInfo& info : AllSchedules()) {
    if (info.forward_only || info.late_updates) continue;
    for (const int ranks : {2, 3}) {
      for (const bool skips : {false, true}) {
        SCOPED_TRACE(absl::StrCat(info.name, " ", ranks, " ", skips));
        const Schedule schedule = WithMessages(info, ranks, 2 * ranks, skips);
        const int stages = schedule.shape.stages();
        int64_t ways = 1;
        for (const auto& list : schedule.ranks) ways *= 1 + ForwardActions(list);
        if (ways > 2000) continue;  // too many to try
        for (const int keeps : {-1, stages - 1, 1, 0}) {
          std::vector<bool> repeats(stages, true);
          if (keeps >= 0) repeats[keeps] = false;
          const std::vector<int> at = LatestValidation(schedule, repeats);
          EXPECT_EQ(at, ByTryingAll(schedule, repeats)) << keeps;
          EXPECT_TRUE(CheckValidation(schedule, at).ok());
          found += !at.empty();
        }
      }
    }
  }
  EXPECT_GT(found, 40);
}

// With the loss on the last stage: as many forward passes on the first rank as the last rank's end comes after its own.
TEST(LateValidation, LeavesTimeForTheLastRank) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    const Schedule schedule = WithMessages(*FindSchedule("zb-h2"), ranks, 3 * ranks, false);
    std::vector<bool> repeats(ranks, true);
    repeats.back() = false;
    const std::vector<int> at = LatestValidation(schedule, repeats);
    ASSERT_EQ(at.size(), ranks);
    int forward = 0;
    for (int k = 0; k < at[0]; ++k) forward += schedule.ranks[0][k].kind == ActionKind::kF;
    EXPECT_GE(forward, ranks - 1);
  }
}

TEST(LateValidation, NothingInFront) {
  const Schedule schedule = WithMessages(*FindSchedule("zb-h1"), 2, 4, false);
  EXPECT_THAT(LatestValidation(schedule, {false, false}), IsEmpty());
}

TEST(LateValidation, CatchesMutants) {
  for (const char* name : {"zb-h1", "zb-h2", "zb-v", "v-half", "v-min"}) {
    const Schedule schedule = WithMessages(*FindSchedule(name), 4, 8, false);
    const std::vector<int> sound =
        LatestValidation(schedule, std::vector<bool>(schedule.shape.stages(), true));
    ASSERT_FALSE(sound.empty());
    for (size_t r = 0; r < sound.size(); ++r) {
      std::vector<int> mutant = sound;
      ++mutant[r];
      EXPECT_FALSE(CheckValidation(schedule, mutant).ok()) << name << " later on rank " << r;
      mutant[r] = static_cast<int>(schedule.ranks[r].size()) + 1;
      EXPECT_THAT(std::string(CheckValidation(schedule, mutant).message()), HasSubstr("none of its actions"));
      mutant[r] = -1;
      EXPECT_THAT(std::string(CheckValidation(schedule, mutant).message()), HasSubstr("none of its actions"));
    }
    std::vector<int> first(sound.size(), 0);
    EXPECT_TRUE(CheckValidation(schedule, first).ok());
    first[0] = sound[0];
    EXPECT_THAT(std::string(CheckValidation(schedule, first).message()), HasSubstr("on its way")) << name;
  }
}

}  // namespace
}  // namespace pipec
