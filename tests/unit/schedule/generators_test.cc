// Grids, goldens and figures of the named schedules.
#include <cmath>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
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
      // The later stages of a rank are marked: F0, F0', F0''.
      const int half = a.action.stage / simulation.ranks.size();
      std::string cell = absl::StrCat(Name(a.action.kind), a.action.microbatch, std::string(half, '\''));
      cell.resize(std::max<int>(3 * (a.end - a.start) - 1, cell.size()), '-');
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

TEST(Generators, GridsOfTheOthers) {
  auto grid = [](absl::string_view name, int P, int V, int M) {
    return Grid(Timed(Generate(name, P, V, M), {1, 1, 1}));
  };
  EXPECT_EQ(grid("eager-1f1b", 4, 1, 4),
            "F0 F1 F2 F3 .. .. .. .. .. .. B0--- .. B1--- .. B2--- .. B3---\n"
            ".. F0 F1 F2 F3 .. .. .. B0--- .. B1--- .. B2--- .. B3---\n"
            ".. .. F0 F1 F2 .. B0--- F3 B1--- .. B2--- .. B3---\n"
            ".. .. .. F0 B0--- F1 B1--- F2 B2--- F3 B3---\n");
  EXPECT_EQ(grid("looped-bfs", 2, 2, 2),
            "F0 F1 F0' F1' .. .. .. B0'-- B1'-- B0--- B1---\n"
            ".. F0 F1 F0' F1' B0'-- B1'-- B0--- B1---\n");
  EXPECT_EQ(grid("zb-h1", 4, 1, 4),
            "F0 F1 F2 F3 .. .. .. I0 W0 I1 W1 I2 W2 I3 W3\n"
            ".. F0 F1 F2 .. .. I0 F3 I1 W0 I2 W1 I3 W2 W3\n"
            ".. .. F0 F1 .. I0 F2 I1 F3 I2 W0 I3 W1 W2 W3\n"
            ".. .. .. F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3\n");
  EXPECT_EQ(grid("zb-h2", 3, 1, 6),
            "F0 F1 F2 F3 F4 I0 F5 I1 W0 I2 W1 I3 W2 I4 W3 I5 W4 W5\n"
            ".. F0 F1 F2 I0 F3 I1 F4 I2 F5 I3 W0 I4 W1 I5 W2 W3 W4 W5\n"
            ".. .. F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 F5 I5 W0 W1 W2 W3 W4 W5\n");
  EXPECT_EQ(grid("zb-v", 2, 2, 3),
            "F0 F1 F2 F0' I0' W0' F1' I1' W1' I0 W0 F2' I2' W2' I1 W1 I2 W2\n"
            ".. F0 F0' F1 F1' I0' W0' F2 I0 W0 F2' I1' W1' I1 I2' I2 W1 W2' W2\n");
  EXPECT_EQ(grid("v-half", 2, 2, 3),
            "F0 F1 F2 F0' I0' W0' F1' I1' I0 W0 W1' F2' I2' W2' I1 W1 .. .. I2 W2\n"
            ".. F0 F0' F1 F1' I0' W0' I0 W0 F2 F2' I1' W1' I1 W1 I2' W2' I2 W2\n");
  EXPECT_EQ(grid("v-min", 2, 2, 3),
            "F0 .. .. F0' I0' W0' F1 I0 W0 F1' I1' W1' F2 I1 W1 F2' I2' W2' .. I2 W2\n"
            ".. F0 F0' .. .. I0' I0 F1 F1' W0' W0 I1' I1 F2 F2' W1' W1 I2' I2 W2' W2\n");
  EXPECT_EQ(grid("dualpipe-v", 2, 2, 4),
            "F0 F1 F2 F0' I0' W0' F1' F3 B1'-- F2' B0--- B2'-- F3' .. B1--- B3'-- I2 W2 I3 W3\n"
            ".. F0 F0' F1 F1' F2 B0'-- F2' B0--- F3 B1'-- F3' B1--- B2'-- B2--- I3' I3 W3' W3\n");
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
  EXPECT_EQ(ToCsv(Generate("zb-h1", 4, 1, 8)), ReadGolden("zb-h1_p4_m8.csv"));
  EXPECT_EQ(ToCsv(Generate("zb-v", 4, 2, 8)), ReadGolden("zb-v_p4_m8.csv"));
  EXPECT_EQ(ToCsv(Generate("dualpipe-v", 4, 2, 8)), ReadGolden("dualpipe-v_p4_m8.csv"));
}

// In PyTorch's older naming B is I; an empty cell is a wait.
TEST(Generators, PyTorchsOwnZeroBubbleWithTwoStagesARank) {
  std::string golden = ReadGolden("zb1p_2rank_2stagep_compute.csv"), ours = ToCsv(Generate("zb-h1", 2, 2, 8));
  golden = absl::StrReplaceAll(golden, {{"B", "I"}});
  while (absl::StrContains(golden, ",,")) golden = absl::StrReplaceAll(golden, {{",,", ","}});
  golden = absl::StrReplaceAll(golden, {{"\n,", "\n"}, {"\r", ""}});
  EXPECT_EQ(ours, golden);
}

TEST(Generators, EveryShapeIsLegalOrRefused) {
  for (const ScheduleInfo& info : AllSchedules()) {
    for (int P = 1; P <= 8; ++P) {
      for (int V = 1; V <= 4; ++V) {
        for (int M = 1; M <= 16; ++M) {
          SCOPED_TRACE(absl::StrCat(info.name, " P=", P, " V=", V, " M=", M));
          auto schedule = info.generate({P, V, M});
          const bool rounds = M % std::max(1, M / P) == 0;
          bool legal = V == 1;
          if (info.name == "infer" || info.name == "looped-bfs") legal = true;
          if (info.name == "interleaved" || info.name == "zb-h1") legal = V == 1 || rounds;
          if (info.placement == Placement::kV) legal = V == 2 && (info.name != "dualpipe-v" || M >= 2 * P);
          if (info.name == "pipedream") legal = V == 1 && M == 1;
          if (info.name == "pipedream-2bw") legal = V == 1 && M >= P;
          EXPECT_EQ(schedule.ok(), legal) << schedule.status();
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
    for (int M = P; M <= 32; ++M) {
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
        // Rounds of N >= P microbatches, P if it divides M.
        const int rounds = std::max(1, M / P), N = M / rounds;
        for (int V = 2; V <= 4 && M % rounds == 0; ++V) {
          const Simulation simulation =
              Timed(Generate("interleaved", P, V, M), {times.f / V, times.i / V, times.w / V});
          EXPECT_NEAR(simulation.makespan, work + (P - 1) * (times.f + B) / V, 1e-9 * work);
          for (int r = 0; r < P; ++r) {
            EXPECT_EQ(MostKept(simulation.ranks[r]), std::min((V - 1) * N + 2 * (P - 1 - r) + 1, V * M));
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
  EXPECT_EQ(Timed(Generate("zb-h1", 4, 1, 8), {1, 1, 1}).makespan, 27);
  EXPECT_EQ(Timed(Generate("zb-v", 4, 2, 8), {0.5, 0.5, 0.5}).makespan, 25.5);
}

// Of the rank that waits longest between its first and its last action.
double IdleInsideSpan(const Simulation& simulation) {
  double most = 0;
  for (const auto& rank : simulation.ranks) {
    double busy = 0;
    for (const SimulatedAction& a : rank) busy += a.end - a.start;
    most = std::max(most, rank.back().end - rank.front().start - busy);
  }
  return most;
}

// Activations that a rank keeps at once, over all of its stages, until W or B.
int MostKeptUntilW(const Schedule& schedule, int rank) {
  int kept = 0, most = 0;
  for (const Action& action : schedule.ranks[rank]) {
    kept += action.kind == ActionKind::kF ? 1 : action.kind == ActionKind::kI ? 0 : -1;
    most = std::max(most, kept);
  }
  return most;
}

int MostKeptUntilW(const Schedule& schedule) {
  int most = 0;
  for (int r = 0; r < schedule.shape.ranks; ++r) most = std::max(most, MostKeptUntilW(schedule, r));
  return most;
}

TEST(Figures, EagerAndLoopedOfEveryShape) {
  for (int P = 2; P <= 8; ++P) {
    for (int M = P; M <= 32; ++M) {
      const Schedule eager = Generate("eager-1f1b", P, 1, M);
      EXPECT_EQ(Timed(eager, {1, 1, 1}).makespan, 3 * (M + P - 1));
      for (int r = 0; r < P; ++r) EXPECT_EQ(MostKeptUntilW(eager, r), std::min(2 * (P - 1 - r) + 1, M));
      for (int V = 1; V <= 4; ++V) {
        const Schedule looped = Generate("looped-bfs", P, V, M);
        EXPECT_EQ(Timed(looped, {1, 1, 1}).makespan, 3 * (V * M + P - 1)) << P << " " << V << " " << M;
        EXPECT_EQ(MostKeptUntilW(looped), V * M);
      }
    }
  }
}

// With messages as long as an action, 1f1b waits for them in the steady phase and eager-1f1b does not.
TEST(Figures, EagerHidesTheTimeOfMessages) {
  auto makespan = [](absl::string_view name) {
    return Simulate(Generate(name, 4, 1, 32), ChainLinks(4, {}, 1), std::vector<StageTimes>(4, {1, 1, 0}))
        ->makespan;
  };
  EXPECT_LE(makespan("eager-1f1b"), 2 * 32 + 4 * 3);
  EXPECT_GT(makespan("1f1b"), 3 * 32);
}

TEST(Figures, ZbH1OfEveryShape) {
  for (int P = 2; P <= 8; ++P) {
    for (int M = P; M <= 32; ++M) {
      const Schedule schedule = Generate("zb-h1", P, 1, M);
      for (StageTimes times :
           {StageTimes{1, 1, 1}, StageTimes{2, 2, 1}, StageTimes{1, 2, 1}, StageTimes{1, 1, 2}}) {
        const double work = M * (times.f + times.i + times.w), least = std::min({times.f, times.i, times.w});
        EXPECT_DOUBLE_EQ(Timed(schedule, times).makespan, work + (P - 1) * (times.f + times.i - least))
            << "P=" << P << " M=" << M << " times " << times.f << " " << times.i << " " << times.w;
      }
      for (int r = 0; r < P; ++r)
        EXPECT_EQ(MostKeptUntilW(schedule, r), std::min(P, M)) << "P=" << P << " M=" << M;
      const int rounds = std::max(1, M / P), N = M / rounds;
      for (int V = 2; V <= 4 && M % rounds == 0; ++V) {
        const Schedule several = Generate("zb-h1", P, V, M);
        EXPECT_EQ(Timed(several, {1, 1, 1}).makespan, 3 * V * M + P - 1)
            << "P=" << P << " V=" << V << " M=" << M;
        for (int r = 0; r < P; ++r)
          EXPECT_EQ(MostKeptUntilW(several, r), (V - 1) * N + P) << "P=" << P << " V=" << V << " M=" << M;
      }
    }
  }
}

TEST(Figures, ZbH2AndZbVDoNotWait) {
  for (int P = 2; P <= 8; ++P) {
    for (int M = 1; M <= 32; ++M) {
      const Schedule h2 = Generate("zb-h2", P, 1, M), v = Generate("zb-v", P, 2, M);
      EXPECT_LE(MostKeptUntilW(h2), 2 * P);
      EXPECT_LE(MostKeptUntilW(v), 2 * P);
      if (M >= 2 * P) {
        EXPECT_EQ(IdleInsideSpan(Timed(h2, {1, 1, 1})), 0) << "zb-h2 P=" << P << " M=" << M;
        EXPECT_EQ(Timed(h2, {1, 1, 1}).makespan, 3 * M + P - 1);
      }
      if (M >= 2 * P - 1) {
        EXPECT_EQ(IdleInsideSpan(Timed(v, {1, 1, 1})), 0) << "zb-v P=" << P << " M=" << M;
        EXPECT_EQ(MostKeptUntilW(v), 2 * P);
      }
    }
  }
}

TEST(Figures, VHalfAndVMin) {
  for (int P = 2; P <= 16; ++P) {
    const int M = 64;
    const Schedule half = Generate("v-half", P, 2, M), min = Generate("v-min", P, 2, M);
    if (P % 2 == 0) {
      EXPECT_EQ(MostKeptUntilW(half), P + 2);
    }
    // Of 1f1b's bubble, which is 6 (P - 1) half actions.
    EXPECT_LE(Timed(half, {1, 1, 1}).makespan - 6 * M, 0.6 * 6 * (P - 1)) << P;
    EXPECT_LE(Timed(min, {1, 1, 1}).makespan - 6 * M, 0.67 * 6 * (P - 1)) << P;
  }
  EXPECT_EQ(MostKeptUntilW(Generate("v-min", 4, 2, 32)), 4);
  EXPECT_EQ(MostKeptUntilW(Generate("v-min", 6, 2, 32)), 6);
  EXPECT_EQ(MostKeptUntilW(Generate("v-min", 8, 2, 32)), 8);
  EXPECT_EQ(MostKeptUntilW(Generate("v-min", 16, 2, 64)), 12);
}

TEST(Figures, DualPipeV) {
  for (int P = 2; P <= 8; ++P) {
    for (int M = 2 * P; M <= 32; ++M) {
      const Schedule schedule = Generate("dualpipe-v", P, 2, M);
      EXPECT_LE(MostKeptUntilW(schedule), 2 * P + 1);
      // Published is (P-1)(F&B + B - 3W) per half stage, with pairs that send nothing before they end.
      EXPECT_LE(Timed(schedule, {1, 1, 1}).makespan, 6 * M + 2 * (P - 1)) << "P=" << P << " M=" << M;
    }
  }
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
