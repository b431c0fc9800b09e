// Grids, goldens and figures of the named schedules.
#include <cmath>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/schedule/rendezvous.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

Schedule Generate(absl::string_view name, int P, int V, int M) {
  auto schedule = FindSchedule(name)->generate({P, V, M});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *std::move(schedule);
}

Simulation Timed(const Schedule& schedule, StageTimes times) {
  const int S = schedule.shape.stages();
  auto simulation = Simulate(schedule, ChainLinks(S), std::vector<StageTimes>(S, times));
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return *std::move(simulation);
}

// One cell of three characters a unit of time.
std::string Grid(const Simulation& simulation) {
  std::string text;
  for (const auto& rank : simulation.ranks) {
    std::vector<std::string> cells;
    double now = 0;
    for (const SimulatedAction& a : rank) {
      for (; now < a.start; ++now) cells.push_back("..");
      std::string cell = absl::StrCat(Name(a.action.kind), a.action.microbatch);
      cell.resize(3 * (a.end - a.start) - 1, '-');
      cells.push_back(cell);
      now = a.end;
    }
    absl::StrAppend(&text, absl::StrJoin(cells, " "), "\n");
  }
  return text;
}

TEST(Generators, GpipeGrid) {
  EXPECT_EQ(Grid(Timed(Generate("gpipe", 4, 1, 4), {1, 1, 1})),
            "F0 F1 F2 F3 .. .. .. .. .. .. .. .. .. B0--- B1--- B2--- B3---\n"
            ".. F0 F1 F2 F3 .. .. .. .. .. .. B0--- B1--- B2--- B3---\n"
            ".. .. F0 F1 F2 F3 .. .. .. B0--- B1--- B2--- B3---\n"
            ".. .. .. F0 F1 F2 F3 B0--- B1--- B2--- B3---\n");
}

TEST(Generators, OneFOneBGrid) {
  EXPECT_EQ(Grid(Timed(Generate("1f1b", 4, 1, 4), {1, 1, 1})),
            "F0 F1 F2 F3 .. .. .. .. .. .. B0--- .. B1--- .. B2--- .. B3---\n"
            ".. F0 F1 F2 .. .. .. .. B0--- F3 B1--- .. B2--- .. B3---\n"
            ".. .. F0 F1 .. .. B0--- F2 B1--- F3 B2--- .. B3---\n"
            ".. .. .. F0 B0--- F1 B1--- F2 B2--- F3 B3---\n");
}

TEST(Generators, InferGrid) {
  EXPECT_EQ(Grid(Timed(Generate("infer", 4, 1, 4), {})),
            "F0 F1 F2 F3\n.. F0 F1 F2 F3\n.. .. F0 F1 F2 F3\n.. .. .. F0 F1 F2 F3\n");
}

TEST(Generators, InterleavedOrder) {
  EXPECT_EQ(ToCsv(Generate("interleaved", 2, 2, 4)),
            "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n");
}

TEST(Generators, InferTakesManyStagesARank) {
  EXPECT_EQ(ToCsv(Generate("infer", 2, 2, 2)), "0F0,0F1,2F0,2F1\n1F0,1F1,3F0,3F1\n");
}

std::string ReadGolden(absl::string_view name) {
  std::ifstream file(absl::StrCat(PIPEC_SOURCE_DIR, "/tests/data/schedules/", name));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Generators, Goldens) {
  EXPECT_EQ(ToCsv(Generate("1f1b", 4, 1, 8)), ReadGolden("1f1b_p4_m8.csv"));
  EXPECT_EQ(ToCsv(Generate("interleaved", 4, 2, 8)), ReadGolden("interleaved_p4_v2_m8.csv"));
}

TEST(Generators, EveryShapeIsLegalOrRefused) {
  for (const ScheduleInfo& info : AllSchedules()) {
    for (int P = 1; P <= 8; ++P) {
      for (int V = 1; V <= 4; ++V) {
        for (int M = 1; M <= 16; ++M) {
          SCOPED_TRACE(absl::StrCat(info.name, " P=", P, " V=", V, " M=", M));
          auto schedule = info.generate({P, V, M});
          if (info.name == "interleaved") {
            EXPECT_EQ(schedule.ok(), M % std::max(1, M / P) == 0);
          } else {
            EXPECT_EQ(schedule.ok(), V == 1 || info.name == "infer");
          }
          if (!schedule.ok()) continue;
          EXPECT_TRUE(CheckSchedule(*schedule, {}).ok()) << CheckSchedule(*schedule, {});
        }
      }
    }
  }
}

TEST(Generators, RefusalsNameWhatWorks) {
  auto interleaved = FindSchedule("interleaved")->generate({4, 2, 11});
  EXPECT_THAT(std::string(interleaved.status().message()), HasSubstr("10 and 12"));
  auto gpipe = FindSchedule("gpipe")->generate({4, 2, 8});
  EXPECT_THAT(std::string(gpipe.status().message()), HasSubstr("one stage a rank"));
  EXPECT_FALSE(FindSchedule("1f1b")->generate({4, 1, 0}).ok());
  EXPECT_EQ(FindSchedule("2f2b"), nullptr);
}

TEST(Placement, LoopAndV) {
  EXPECT_THAT(PlaceStages({2, 3, 1}, Placement::kLoop), testing::ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(PlaceStages({3, 2, 1}, Placement::kV), testing::ElementsAre(0, 1, 2, 2, 1, 0));
}

// The field's rules of thumb: equal stages, messages free.
TEST(Figures, BubbleRatios) {
  auto bubble = [](absl::string_view name, int V, int M) {
    const double part = 1.0 / V;
    return std::round(1000 * Timed(Generate(name, 8, V, M), {part, part, part}).bubble_ratio) / 10;
  };
  EXPECT_EQ(bubble("gpipe", 1, 4), 63.6);
  EXPECT_EQ(bubble("1f1b", 1, 4), 63.6);
  EXPECT_EQ(bubble("1f1b", 1, 32), 17.9);
  EXPECT_EQ(bubble("1f1b", 1, 13), 35.0);
  EXPECT_EQ(bubble("interleaved", 4, 13), 11.9);
}

// Activations that a rank keeps at once, over all of its stages.
int MostKept(const std::vector<SimulatedAction>& rank) {
  int kept = 0, most = 0;
  for (const SimulatedAction& a : rank) {
    kept += a.action.kind == ActionKind::kF ? 1 : -1;
    most = std::max(most, kept);
  }
  return most;
}

TEST(Figures, BubbleAndActivationsOfEveryShape) {
  for (int P = 2; P <= 8; ++P) {
    for (int M = P; M <= 16; ++M) {
      for (StageTimes times : {StageTimes{1, 1, 1}, StageTimes{1, 1, 0}, StageTimes{2, 3, 1}}) {
        const double B = times.i + times.w, work = M * (times.f + B);
        const Simulation gpipe = Timed(Generate("gpipe", P, 1, M), times);
        const Simulation one = Timed(Generate("1f1b", P, 1, M), times);
        EXPECT_DOUBLE_EQ(gpipe.makespan, work + (P - 1) * (times.f + B));
        EXPECT_DOUBLE_EQ(one.makespan, work + (P - 1) * (times.f + B));
        for (int r = 0; r < P; ++r) {
          EXPECT_EQ(gpipe.peak_activations[r], M);
          EXPECT_EQ(one.peak_activations[r], std::min(P - r, M));
        }
        if (M % P == 0) {
          const Simulation two =
              Timed(Generate("interleaved", P, 2, M), {times.f / 2, times.i / 2, times.w / 2});
          EXPECT_DOUBLE_EQ(two.makespan, work + (P - 1) * (times.f + B) / 2);
          for (int r = 0; r < P; ++r) {
            EXPECT_EQ(MostKept(two.ranks[r]), std::min(P + 2 * (P - 1 - r) + 1, 2 * M));
          }
        }
      }
    }
  }
}

TEST(Figures, MakespansOfTheGoldens) {
  EXPECT_EQ(Timed(Generate("1f1b", 4, 1, 8), {1, 1, 1}).makespan, 33);
  EXPECT_EQ(Timed(Generate("gpipe", 4, 1, 8), {1, 1, 1}).makespan, 33);
  EXPECT_EQ(Timed(Generate("interleaved", 4, 2, 8), {0.5, 0.5, 0.5}).makespan, 28.5);
}

TEST(Simulate, MessagesShareAChannelAndOverlapCompute) {
  // One stage a rank, F takes 1, the message 2: the channel is the slowest part, and stage 0 does not wait
  // for it.
  const Schedule schedule = Generate("gpipe", 2, 1, 3);
  const std::vector<StageLink> links = ChainLinks(2, {}, 2);
  const Simulation simulation = *Simulate(schedule, links, std::vector<StageTimes>(2, {1, 1, 0}));
  std::vector<double> starts;
  for (const SimulatedAction& a : simulation.ranks[1]) starts.push_back(a.start);
  EXPECT_THAT(starts, testing::ElementsAre(3, 5, 7, 8, 9, 10));
  EXPECT_EQ(simulation.ranks[0][2].end, 3);
  // Gradients leave at 9, 10, 11 and arrive at 11, 13, 15.
  EXPECT_EQ(simulation.makespan, 16);

  // The same lists with their messages take the same time, and a message its time on the wire.
  const Schedule with = *AddMessages(schedule, links, std::vector<StageTimes>(2, {1, 1, 0}));
  const Simulation again = *Simulate(with, links, std::vector<StageTimes>(2, {1, 1, 0}));
  EXPECT_EQ(again.makespan, 16);
  EXPECT_EQ(ToString(again.ranks[0][1].action), "0SEND_F0");
  EXPECT_EQ(again.ranks[0][1].start, 1);
  EXPECT_EQ(again.ranks[0][1].end, 3);
}

}  // namespace
}  // namespace pipec
