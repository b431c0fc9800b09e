#include "compiler/memory/segments.h"

#include <gtest/gtest.h>

#include <random>

namespace pipec {
namespace {

// Every choice of cuts.
int64_t BruteForce(const SegmentProblem& problem) {
  const int places = static_cast<int>(problem.crossing.size());
  int64_t least = SegmentBytes(problem, {});
  for (int chosen = 0; chosen < 1 << places; ++chosen) {
    std::vector<int> cuts;
    for (int k = 0; k < places; ++k) {
      if (chosen >> k & 1) cuts.push_back(k);
    }
    least = std::min(least, SegmentBytes(problem, cuts));
  }
  return least;
}

TEST(Segments, BytesOfACutByHand) {
  const SegmentProblem problem{{10, 20, 30, 40}, {1, 2, 3}, 5};
  EXPECT_EQ(SegmentBytes(problem, {}), 100);
  EXPECT_EQ(SegmentBytes(problem, {1}), 5 * 2 + 70);
  EXPECT_EQ(SegmentBytes(problem, {0, 2}), 5 * (1 + 3) + 50);
}

TEST(Segments, WithinFivePercentOfTheLeast) {
  std::mt19937 random(1);
  for (int run = 0; run < 300; ++run) {
    SegmentProblem problem;
    const int nodes = 1 + random() % 12;
    for (int k = 0; k < nodes; ++k) problem.made.push_back(random() % 4 == 0 ? 0 : random() % 1000);
    for (int k = 0; k + 1 < nodes; ++k) problem.crossing.push_back(random() % 300);
    problem.in_flight = 1 + random() % 4;
    const std::vector<int> cuts = CutSegments(problem);
    EXPECT_LE(SegmentBytes(problem, cuts), 1.05 * BruteForce(problem) + 1) << "run " << run;
    EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
  }
}

TEST(Segments, EqualLayersAreCutIntoAboutTheRootOfTheirNumber) {
  const SegmentProblem problem{std::vector<int64_t>(100, 10), std::vector<int64_t>(99, 10), 1};
  EXPECT_EQ(CutSegments(problem).size(), 9);
}

TEST(Segments, ThousandsOfNodes) {
  const SegmentProblem problem{std::vector<int64_t>(20000, 10), std::vector<int64_t>(19999, 10), 2};
  EXPECT_LE(SegmentBytes(problem, CutSegments(problem)), 4400);
}

}  // namespace
}  // namespace pipec
