// FindBestSchedule against all orders there are, one by one, on problems that are small enough for that; its
// promises on larger ones.
#include "compiler/schedule/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "compiler/schedule/search/bound.h"

namespace pipec {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

class Numbers {
 public:
  explicit Numbers(unsigned seed) : engine_(seed) {}
  double Between(double low, double high) { return low + (high - low) * (engine_() * 0x1p-32); }
  int Below(int n) { return static_cast<int>(engine_() % n); }

 private:
  std::mt19937 engine_;
};

// A chain of stages with random times and memory; with `skip` one that goes from the first stage to the last as well.
ScheduleProblem RandomProblem(const ScheduleShape& shape, Placement placement, Numbers& numbers,
                              bool skip = false) {
  ScheduleProblem problem{shape, PlaceStages(shape, placement), {}, {}, {}, {}};
  const int S = shape.stages();
  const double hop = numbers.Below(3) == 0 ? 0 : numbers.Between(0, 1.5);
  for (int s = 0; s < S; ++s) {
    const double f = numbers.Between(0.5, 2);
    problem.times.push_back({f, f * numbers.Between(0.5, 1.5), f * numbers.Between(0.1, 1.5)});
    const int64_t kept = 1 + numbers.Below(3), freed = numbers.Below(static_cast<int>(kept) + 1);
    // Some of it I frees, and some W; or I adds to what W frees.
    problem.memory.push_back({freed, kept - freed, numbers.Below(2)});
    if (s > 0) problem.links.push_back({s - 1, s, hop}), problem.links.push_back({s, s - 1, hop});
  }
  if (skip && S > 2) {
    problem.links.push_back({0, S - 1, hop});
    problem.links.push_back({S - 1, 0, hop});
  }
  for (int r = 0; r < shape.ranks; ++r) {
    int64_t least = 0;
    for (int s = 0; s < S; ++s) {
      if (problem.rank_of_stage[s] == r)
        least += problem.memory[s].until_input + problem.memory[s].until_weight + problem.memory[s].between;
    }
    problem.limit.push_back(least + numbers.Below(static_cast<int>(least) * shape.microbatches));
  }
  return problem;
}

int64_t Change(const KeptBytes& kept, ActionKind kind) {
  if (kind == ActionKind::kF) return kept.until_input + kept.until_weight;
  if (kind == ActionKind::kI) return kept.between - kept.until_input;
  if (kind == ActionKind::kW) return -kept.until_weight - kept.between;
  return -kept.until_input - kept.until_weight;
}

bool Fits(const Schedule& schedule, const ScheduleProblem& problem) {
  for (int r = 0; r < problem.shape.ranks; ++r) {
    int64_t kept = 0;
    for (const Action& action : schedule.ranks[r]) {
      kept += Change(problem.memory[action.stage], action.kind);
      if (kept > problem.limit[r]) return false;
    }
  }
  return true;
}

// The least makespan over all orders of every rank, each simulated.
double BruteForce(const ScheduleProblem& problem) {
  const int P = problem.shape.ranks, M = problem.shape.microbatches;
  std::vector<std::vector<std::vector<Action>>> lists(P);
  for (int r = 0; r < P; ++r) {
    std::vector<Action> list;
    std::vector<int> done(3 * problem.shape.stages(), 0);
    std::function<void()> grow = [&] {
      bool over = true;
      for (int s = 0; s < problem.shape.stages(); ++s) {
        if (problem.rank_of_stage[s] != r) continue;
        for (int row = 0; row < 3; ++row) {
          int& count = done[3 * s + row];
          if (count == (row == 0 ? M : done[3 * s + row - 1])) continue;
          over = false;
          list.push_back({row == 0   ? ActionKind::kF
                          : row == 1 ? ActionKind::kI
                                     : ActionKind::kW,
                          s, count++});
          grow();
          list.pop_back();
          --count;
        }
      }
      if (over) lists[r].push_back(list);
    };
    grow();
  }
  double best = kNone;
  Schedule schedule{"all", problem.shape, problem.rank_of_stage, std::vector<std::vector<Action>>(P)};
  std::function<void(int)> choose = [&](int r) {
    if (r == P) {
      if (!Fits(schedule, problem)) return;
      const auto simulation = Simulate(schedule, problem.links, problem.times);
      if (simulation.ok()) best = std::min(best, simulation->makespan);
      return;
    }
    for (const std::vector<Action>& list : lists[r]) {
      schedule.ranks[r] = list;
      choose(r + 1);
    }
  };
  choose(0);
  return best;
}

void ExpectBest(const ScheduleProblem& problem) {
  const double least = BruteForce(problem);
  const auto found = FindBestSchedule(problem, {});
  EXPECT_LE(MakespanBound(problem), least * (1 + 1e-9));
  if (least == kNone) {
    EXPECT_FALSE(found.ok());
    return;
  }
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_NEAR(found->makespan, least, 1e-9 * least);
  EXPECT_TRUE(found->is_best);
  EXPECT_TRUE(Fits(found->schedule, problem));
}

TEST(FindBestSchedule, IsTheBestOfAllOrders) {
  Numbers numbers(1);
  for (int k = 0; k < 18; ++k) {
    SCOPED_TRACE(k);
    ExpectBest(RandomProblem({2, 1, 1 + k % 3}, Placement::kLoop, numbers));
    ExpectBest(RandomProblem({3, 1, 1 + k % 2}, Placement::kLoop, numbers, k % 2 == 1));
    ExpectBest(RandomProblem({2, 2, 1}, k % 2 ? Placement::kV : Placement::kLoop, numbers, k % 3 == 0));
    ExpectBest(RandomProblem({1, 2, 1 + k % 2}, Placement::kLoop, numbers));
  }
}

// What a larger problem has instead: the promises of the header.
TEST(FindBestSchedule, IsSoundAndNeverWorseThanTheNamedOnes) {
  Numbers numbers(2);
  for (int k = 0; k < 4; ++k) {
    SCOPED_TRACE(k);
    const bool v = k % 2;
    const ScheduleShape shape{2 + k % 3, v || k % 4 == 2 ? 2 : 1, 6 + 2 * (k % 3)};
    const ScheduleProblem problem =
        RandomProblem(shape, v ? Placement::kV : Placement::kLoop, numbers, k % 3 == 0);
    std::vector<Schedule> named;
    double best_named = kNone;
    for (const ScheduleInfo& info : AllSchedules()) {
      if (info.forward_only || info.late_updates) continue;
      auto schedule = info.generate(shape);
      if (!schedule.ok() || schedule->rank_of_stage != problem.rank_of_stage) continue;
      named.push_back(*schedule);
      const auto simulation = Simulate(*schedule, problem.links, problem.times);
      if (simulation.ok() && Fits(*schedule, problem))
        best_named = std::min(best_named, simulation->makespan);
    }
    const auto found = FindBestSchedule(problem, named);
    if (!found.ok()) continue;
    EXPECT_LE(found->makespan, best_named * (1 + 1e-9));
    EXPECT_GE(found->makespan, found->bound * (1 - 1e-9));
    EXPECT_TRUE(Fits(found->schedule, problem));
    EXPECT_EQ(CheckSchedule(found->schedule, {}), absl::OkStatus());
    const auto simulation = Simulate(found->schedule, problem.links, problem.times);
    ASSERT_TRUE(simulation.ok());
    EXPECT_NEAR(simulation->makespan, found->makespan, 1e-9 * found->makespan);
    const auto again = FindBestSchedule(problem, named);
    EXPECT_EQ(again->schedule.ranks, found->schedule.ranks);
  }
}

// Seconds that the rank with most to do has from its first action to what is `after` its last.
double LongestSpan(const Schedule& schedule, const ScheduleProblem& problem, const std::vector<double>& after) {
  const auto simulation = Simulate(schedule, problem.links, problem.times);
  if (!simulation.ok()) return kNone;
  double longest = 0;
  for (size_t r = 0; r < after.size(); ++r) {
    const std::vector<SimulatedAction>& slices = simulation->ranks[r];
    longest = std::max(longest, slices.back().end - slices.front().start + after[r]);
  }
  return longest;
}

TEST(ShortenSpans, IsSoundAndShortensMost) {
  Numbers numbers(3);
  int shorter = 0, shortest = 0, all = 0;
  for (int k = 0; k < 24; ++k) {
    SCOPED_TRACE(k);
    const ScheduleShape shape{2 + k % 4, 1, 6 + 2 * (k % 3)};
    ScheduleProblem problem = RandomProblem(shape, Placement::kLoop, numbers, k % 3 == 0);
    std::vector<double> after;
    for (int r = 0; r < shape.ranks; ++r) after.push_back(numbers.Between(0, 4));
    const auto start = FindSchedule("zb-h1")->generate(shape);
    ASSERT_TRUE(start.ok());
    const auto found = ShortenSpans(problem, after, *start);
    EXPECT_EQ(found.ok(), Fits(*start, problem));
    if (!found.ok()) continue;
    EXPECT_TRUE(Fits(*found, problem));
    EXPECT_EQ(CheckSchedule(*found, {}), absl::OkStatus());
    const double before = LongestSpan(*start, problem, after), now = LongestSpan(*found, problem, after);
    EXPECT_LE(now, before * (1 + 1e-9));
    shorter += now < before * 0.999;
    double work = 0;  // no span is shorter than what a rank does in it
    for (int r = 0; r < shape.ranks; ++r) {
      const StageTimes& times = problem.times[r];
      work = std::max(work, (times.f + times.i + times.w) * shape.microbatches + after[r]);
    }
    EXPECT_GE(now, work * (1 - 1e-9));
    shortest += now <= work * (1 + 1e-9);
    ++all;
  }
  EXPECT_GE(all, 8);
  EXPECT_GE(2 * shorter, all);
  EXPECT_GE(2 * shortest, all) << shortest << " " << shorter;
}

}  // namespace
}  // namespace pipec
