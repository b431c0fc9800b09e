// AddMessages: lists that complete under blocking sends, with bounded receive buffers.
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/rounds.h"
#include "compiler/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/schedule/rendezvous.h"

namespace pipec {
namespace {

std::vector<std::pair<int, int>> RandomSkips(int stages, std::mt19937& random) {
  std::vector<std::pair<int, int>> skips;
  for (int from = 0; from < stages; ++from) {
    for (int to = from + 2; to < stages; ++to) {
      if (random() % 4 == 0) skips.push_back({from, to});
    }
  }
  return skips;
}

std::vector<StageTimes> RandomTimes(int stages, std::mt19937& random) {
  std::uniform_real_distribution<double> seconds(0.1, 5);
  std::vector<StageTimes> times(stages);
  for (StageTimes& t : times) t = {seconds(random), seconds(random), seconds(random)};
  return times;
}

// A schedule without flush over some steps; any other as it is.
Schedule Whole(const Schedule& schedule) {
  return schedule.asynchronous() ? Unroll(schedule, 4).schedule : schedule;
}

TEST(AddMessages, EveryListCompletesWhenSendsBlock) {
  std::mt19937 random(1);
  int cases = 0;
  for (const ScheduleInfo& info : AllSchedules()) {
    for (int P = 1; P <= 8; ++P) {
      for (int V = 1; V <= 4; ++V) {
        for (int M = 1; M <= 16; ++M) {
          auto compute = info.generate({P, V, M});
          if (!compute.ok()) continue;
          SCOPED_TRACE(absl::StrCat(info.name, " P=", P, " V=", V, " M=", M));
          const int S = P * V;
          const auto skips = random() % 2 ? RandomSkips(S, random) : std::vector<std::pair<int, int>>{};
          const double seconds = random() % 3 * 0.4;
          const auto links = ChainLinks(S, skips, seconds, !info.forward_only);
          const auto times = random() % 3 ? RandomTimes(S, random) : std::vector<StageTimes>(S);
          auto schedule = AddMessages(*compute, links, times);
          ASSERT_TRUE(schedule.ok()) << schedule.status();
          ASSERT_TRUE(CheckSchedule(*schedule, links).ok()) << CheckSchedule(*schedule, links);
          const Schedule all = Whole(*schedule);
          const RendezvousResult result = RunRendezvous(all, links);
          ASSERT_TRUE(result.completes);
          EXPECT_EQ(ToCsv(all), ToCsv(Whole(*compute)));
          ++cases;
        }
      }
    }
  }
  EXPECT_GT(cases, 1000);
}

// In order "receive just before use, send right after", a pair of ranks that both send blocks for ever: 1f1b
// with its messages placed so must be seen to deadlock, or the test above proves nothing.
TEST(AddMessages, NaiveOrderDeadlocks) {
  Schedule naive = *FindSchedule("1f1b")->generate({2, 1, 4});
  for (auto& list : naive.ranks) {
    std::vector<Action> with;
    for (const Action& a : list) {
      const bool forward = a.kind == ActionKind::kF;
      const int peer = 1 - a.stage;
      const bool receives = forward == (a.stage == 1);
      if (receives)
        with.push_back({forward ? ActionKind::kRecvF : ActionKind::kRecvB, a.stage, a.microbatch, peer});
      with.push_back(a);
      if (!receives)
        with.push_back({forward ? ActionKind::kSendF : ActionKind::kSendB, a.stage, a.microbatch, peer});
    }
    list = with;
  }
  EXPECT_FALSE(RunRendezvous(naive, ChainLinks(2)).completes);
  const absl::Status status = CheckSchedule(naive, ChainLinks(2));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("wait for each other"));
}

// Else the sender would have to keep what it sends until the receiver's action is over.
TEST(AddMessages, AReceiveIsPostedBeforeItsMessageGoesOnTheWire) {
  std::mt19937 random(4);
  for (const ScheduleInfo& info : AllSchedules()) {
    if (info.forward_only) continue;
    for (int round = 0; round < 10; ++round) {
      auto compute = info.generate({4, info.default_virtual_stages, 12});
      if (info.late_updates) continue;  // rounds are placed by unit times
      ASSERT_TRUE(compute.ok()) << info.name << compute.status();
      const int S = compute->shape.stages();
      const auto times = RandomTimes(S, random);
      const auto links = ChainLinks(S, {}, 0.1 * round);
      const Schedule schedule = *AddMessages(*compute, links, times);
      const Simulation simulation = *Simulate(schedule, links, times);
      for (const auto& list : simulation.ranks) {
        double over = 0;  // the latest compute action so far
        for (const SimulatedAction& slice : list) {
          const Action& a = slice.action;
          if (IsCompute(a.kind)) over = slice.end;
          if (a.kind != ActionKind::kRecvF && a.kind != ActionKind::kRecvB) continue;
          EXPECT_LE(over, slice.start) << info.name << " " << ToString(a);
        }
      }
    }
  }
}

TEST(AddMessages, ReceiveBuffersDoNotGrowWithMicrobatches) {
  std::mt19937 random(2);
  for (int P = 2; P <= 6; ++P) {
    for (int round = 0; round < 20; ++round) {
      const auto skips = RandomSkips(P, random);
      const auto times = RandomTimes(P, random);
      const auto links = ChainLinks(P, skips, 0.3);
      for (int M : {4, 16, 64}) {
        const Schedule schedule = *AddMessages(*FindSchedule("1f1b")->generate({P, 1, M}), links, times);
        EXPECT_LE(RunRendezvous(schedule, links).most_buffers, P + 1);
      }
    }
  }
}

TEST(AddMessages, InferHoldsTwoMessagesALink) {
  std::mt19937 random(3);
  for (int P = 2; P <= 6; ++P) {
    for (int V = 1; V <= 3; ++V) {
      for (int round = 0; round < 10; ++round) {
        const auto times = round ? RandomTimes(P * V, random) : std::vector<StageTimes>(P * V);
        const auto links = ChainLinks(P * V, {}, 0.2 * round, false);
        const Schedule schedule = *AddMessages(*FindSchedule("infer")->generate({P, V, 40}), links, times);
        EXPECT_LE(RunRendezvous(schedule, links).most_buffers, 2);
      }
    }
  }
}

TEST(AddMessages, InferWithSkipsHoldsOneMoreThanTheDistance) {
  const auto links = ChainLinks(4, {{0, 3}, {1, 3}}, 0.1, false);
  const Schedule schedule =
      *AddMessages(*FindSchedule("infer")->generate({4, 1, 40}), links, std::vector<StageTimes>(4));
  EXPECT_LE(RunRendezvous(schedule, links).most_buffers, 4);
}

TEST(AddMessages, NamesADeadlock) {
  Schedule schedule = *FindSchedule("1f1b")->generate({2, 1, 2});
  std::swap(schedule.ranks[1][0], schedule.ranks[1][1]);  // a B before its F
  const auto status = AddMessages(schedule, ChainLinks(2), std::vector<StageTimes>(2)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("rank 1 at 1B0 (position 0)"));
}

TEST(AddMessages, RefusesLinksThatAreNone) {
  const Schedule schedule = *FindSchedule("1f1b")->generate({2, 1, 2});
  const std::vector<StageTimes> times(2);
  EXPECT_FALSE(AddMessages(schedule, {{{0, 2}}}, times).ok());
  EXPECT_FALSE(AddMessages(schedule, {{{0, 1}, {0, 1}}}, times).ok());
  EXPECT_FALSE(AddMessages(schedule, ChainLinks(2), std::vector<StageTimes>(3)).ok());
}

}  // namespace
}  // namespace pipec
