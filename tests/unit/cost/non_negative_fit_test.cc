#include "compiler/cost/non_negative_fit.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace pipec {
namespace {

constexpr double kGrain = 1e-3;

// The optimum of a convex problem is where no coefficient can move: the sum's derivative is 0 where a coefficient
// is above 0, and not below 0 where it is 0 (Karush, Kuhn, Tucker).
void ExpectOptimal(const FitTerms& fit, const std::vector<Observation>& observations) {
  for (int i = 0; i < kFitTerms; ++i) {
    double derivative = 0, scale = 0;
    for (const Observation& o : observations) {
      const double weight = std::sqrt(o.weight) / std::max(o.value, kGrain);
      const double error = (SumOfTerms(fit, o.terms) - o.value) * weight;
      derivative += error * o.terms[i] * weight;
      scale += std::abs(o.terms[i] * weight);
    }
    EXPECT_GE(fit[i], 0);
    EXPECT_GE(derivative, -1e-5 * scale) << "more of term " << i << " would be better";
    if (fit[i] > 0) {
      EXPECT_LE(derivative, 1e-5 * scale) << "less of term " << i << " would be better";
    }
  }
}

TEST(NonNegativeFit, IsOptimal) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  int at_bounds = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<Observation> observations(1 + random() % 8);
    for (Observation& o : observations) {
      o = {{std::exp(4 * normal(random)), std::exp(normal(random)), round % 3 ? 1 : normal(random)},
           std::max(std::exp(2 * normal(random)) - 0.01, 0.0),
           round % 2 ? 1 : std::exp(normal(random))};
    }
    const FitTerms fit = FitNonNegative(observations, kGrain);
    ExpectOptimal(fit, observations);
    at_bounds += std::count(fit.begin(), fit.end(), 0) > 0;
  }
  EXPECT_GT(at_bounds, 100);
  EXPECT_LT(at_bounds, 1900);
}

TEST(NonNegativeFit, RecoversALaw) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> uniform;
  for (int round = 0; round < 500; ++round) {
    const FitTerms truth = {uniform(random) * 1e-9, round % 2 ? 0 : uniform(random) * 1e-11,
                            round % 5 ? uniform(random) * 1e-5 : 0};
    std::vector<Observation> observations;
    for (int k = 0; k < 6; ++k) {
      const FitTerms terms = {uniform(random) * 1e6, uniform(random) * 1e8, 1};
      observations.push_back({terms, SumOfTerms(truth, terms)});
    }
    const FitTerms fit = FitNonNegative(observations, 1e-9), elsewhere = {1e8, 1e9, 1};
    EXPECT_NEAR(SumOfTerms(fit, elsewhere) / SumOfTerms(truth, elsewhere), 1, 1e-5);
  }
}

TEST(NonNegativeFit, ErrorsAreRelative) {
  // No line through the origin fits 1 at 1 and 200 at 100: halfway in ratio, not through the large one.
  const FitTerms fit = FitNonNegative(std::vector<Observation>{{{1, 0, 0}, 1}, {{100, 0, 0}, 200}}, kGrain);
  EXPECT_NEAR(fit[0], (1 + 0.5) / (1 + 0.25), 1e-12);
  // Below the grain they are absolute: a time of almost nothing does not rule.
  const FitTerms blurred = FitNonNegative(std::vector<Observation>{{{0, 0, 1}, 1e-9}, {{0, 0, 1}, 1}}, 1);
  EXPECT_NEAR(blurred[2], 0.5, 1e-6);
}

TEST(NonNegativeFit, OfNothingNothing) {
  EXPECT_EQ(FitNonNegative({}, kGrain), FitTerms());
  EXPECT_EQ(FitNonNegative(std::vector<Observation>{{{0, 0, 0}, 5}}, kGrain), FitTerms());
  // Terms that say the same: one of them.
  const FitTerms one = FitNonNegative(std::vector<Observation>{{{2, 4, 0}, 6}, {{3, 6, 0}, 9}}, kGrain);
  EXPECT_NEAR(one[0], 3, 1e-12);
  EXPECT_EQ(one[1], 0);
}

}  // namespace
}  // namespace pipec
