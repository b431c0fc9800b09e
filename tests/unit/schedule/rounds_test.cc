// Schedules without flush: rounds, their messages, versions of the weights, and the checker's mutants.
#include "compiler/schedule/rounds.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

std::string Text(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) absl::StrAppend(&text, text.empty() ? "" : " ", ToString(action));
  return text;
}

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

OnceAStep Everything(const ScheduleShape& shape, bool norms) {
  return {std::vector<bool>(shape.ranks, norms), norms, std::vector<bool>(shape.stages(), true)};
}

Schedule Placed(const char* name, int ranks, int microbatches, bool skips) {
  auto rounds = FindSchedule(name)->generate({ranks, 1, microbatches});
  EXPECT_TRUE(rounds.ok()) << rounds.status();
  auto placed =
      PlaceRounds(*rounds, Links(ranks, skips), Everything(rounds->shape, rounds->name == "pipedream-2bw"));
  EXPECT_TRUE(placed.ok()) << placed.status();
  return *placed;
}

struct Shape {
  const char* name;
  int ranks, microbatches;
};

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    shapes.push_back({"pipedream", ranks, 1});
    for (int m : {ranks, ranks + 1, 2 * ranks, 3 * ranks + 1}) shapes.push_back({"pipedream-2bw", ranks, m});
  }
  return shapes;
}

TEST(Rounds, TheGridOfPipedream) {
  const Schedule rounds = *FindSchedule("pipedream")->generate({4, 1, 1});
  const Unrolled grid = Unroll(rounds, 4);
  EXPECT_EQ(Text(grid.schedule.ranks[0]), "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3");
  EXPECT_EQ(Text(grid.schedule.ranks[1]), "1F0 1F1 1F2 1B0 1F3 1B1 1B2 1B3");
  EXPECT_EQ(Text(grid.schedule.ranks[2]), "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2B3");
  EXPECT_EQ(Text(grid.schedule.ranks[3]), "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3");
}

TEST(Rounds, TheGridOfPipedream2bw) {
  const Schedule rounds = *FindSchedule("pipedream-2bw")->generate({3, 1, 4});
  EXPECT_EQ(Text(rounds.ranks[0]), "0F0 0B2-1 0F1 0B3-1 0F2 0B0 0F3 0B1");
  const Unrolled grid = Unroll(rounds, 2);
  EXPECT_EQ(Text(grid.schedule.ranks[0]), "0F0 0F1 0F2 0B0 0F3 0B1 0F4 0B2 0F5 0B3 0F6 0B4 0F7 0B5 0B6 0B7");
  EXPECT_EQ(Text(grid.schedule.ranks[1]), "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1F4 1B3 1F5 1B4 1F6 1B5 1F7 1B6 1B7");
  EXPECT_EQ(Text(grid.schedule.ranks[2]), "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5 2F6 2B6 2F7 2B7");
}

TEST(Rounds, RefusesMicrobatchesItCannotTake) {
  EXPECT_THAT(FindSchedule("pipedream")->generate({2, 1, 4}).status().message(),
              HasSubstr("--microbatches=1 works"));
  EXPECT_THAT(FindSchedule("pipedream-2bw")->generate({4, 1, 3}).status().message(),
              HasSubstr("--microbatches=4 works"));
}

TEST(Rounds, UpdatesAndMessagesOfEveryShapeAreSound) {
  for (const Shape& shape : Shapes()) {
    for (bool skips : {false, true}) {
      SCOPED_TRACE(absl::StrCat(shape.name, " ", shape.ranks, " ", shape.microbatches, " ", skips));
      const Schedule placed = Placed(shape.name, shape.ranks, shape.microbatches, skips);
      const absl::Status status = CheckSchedule(placed, Links(shape.ranks, skips));
      EXPECT_TRUE(status.ok()) << status;
      for (int r = 0; r < shape.ranks; ++r) {
        const int updates = std::count_if(placed.ranks[r].begin(), placed.ranks[r].end(),
                                          [](const Action& a) { return a.kind == ActionKind::kUpdate; });
        EXPECT_EQ(updates, 1);
      }
    }
  }
}

TEST(Rounds, NoBubbleAndNoMoreActivationsThan1f1b) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(absl::StrCat(shape.name, " ", shape.ranks, " ", shape.microbatches));
    const Schedule placed = Placed(shape.name, shape.ranks, shape.microbatches, false);
    const auto simulation = Simulate(placed, Links(shape.ranks, false), std::vector<StageTimes>(shape.ranks));
    ASSERT_TRUE(simulation.ok()) << simulation.status();
    EXPECT_NEAR(simulation->bubble_ratio, 0, 1e-12);
    EXPECT_NEAR(simulation->makespan, 3 * shape.microbatches, 1e-9);
    for (int r = 0; r < shape.ranks; ++r) {
      EXPECT_EQ(simulation->peak_activations[r], shape.ranks - r);
      EXPECT_EQ(simulation->ranks[r].size(), placed.ranks[r].size());
    }
  }
}

// The pace is that of the slowest stage, or of a message's way there and back if that takes longer.
TEST(Rounds, StepTimeIsTheSlowestStages) {
  const Schedule placed = Placed("pipedream-2bw", 4, 8, false);
  std::vector<StageTimes> times(4);
  times[2] = {2, 3, 1};
  const auto simulation = Simulate(placed, Links(4, false), times);
  ASSERT_TRUE(simulation.ok());
  EXPECT_NEAR(simulation->makespan, 8 * 6, 1e-9);
  EXPECT_NEAR(simulation->bubble_ratio, 1 - (3 * 24 + 48) / (4 * 48.0), 1e-9);
}

// Every action dropped, doubled, put into another step.
TEST(Rounds, MutantsAreCaught) {
  for (const auto& [name, microbatches] : {std::pair("pipedream", 1), std::pair("pipedream-2bw", 5)}) {
    const std::vector<StageLink> links = Links(4, false);
    const Schedule sound = Placed(name, 4, microbatches, false);
    ASSERT_TRUE(CheckSchedule(sound, links).ok());
    const auto caught = [&](const Schedule& mutant, const std::string& what) {
      EXPECT_FALSE(CheckSchedule(mutant, links).ok()) << name << ": " << what;
    };
    for (int r = 0; r < 4; ++r) {
      for (size_t k = 0; k < sound.ranks[r].size(); ++k) {
        const std::string what = absl::StrCat("rank ", r, " position ", k, " ", ToString(sound.ranks[r][k]));
        Schedule mutant = sound;
        const bool update = sound.ranks[r][k].kind == ActionKind::kUpdate;
        if (!update && sound.ranks[r][k].kind != ActionKind::kReduceTied &&
            sound.ranks[r][k].kind != ActionKind::kNorm) {
          mutant.ranks[r].erase(mutant.ranks[r].begin() + k);
          caught(mutant, "without " + what);
        }
        mutant = sound;
        mutant.ranks[r].insert(mutant.ranks[r].begin() + k, sound.ranks[r][k]);
        caught(mutant, "twice " + what);
        // A receive may be posted a step early, and a send may be late; an update of pipedream-2bw has time.
        const ActionKind kind = sound.ranks[r][k].kind;
        const bool receive = kind == ActionKind::kRecvF || kind == ActionKind::kRecvB;
        const bool send = IsMessage(kind) && !receive;
        mutant = sound;
        ++mutant.ranks[r][k].lag;
        if (!send && !update) caught(mutant, "a step later " + what);
        if (sound.ranks[r][k].lag == 0 || receive) continue;
        mutant = sound;
        --mutant.ranks[r][k].lag;
        caught(mutant, "a step earlier " + what);
      }
    }
  }
}

TEST(Rounds, AVersionIsNotOverwrittenWhileNeeded) {
  Schedule early = Placed("pipedream-2bw", 2, 2, false);
  // One version too few: an update then writes over what the next step still reads.
  early.weight_delay = {0, 0};
  EXPECT_THAT(CheckSchedule(early, Links(2, false)).message(), HasSubstr("needs weight version"));
}

}  // namespace
}  // namespace pipec
