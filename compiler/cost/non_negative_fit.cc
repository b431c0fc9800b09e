// The optimum is the unconstrained one over the terms that it uses (Lawson and Hanson, Solving Least Squares Problems,
// 1974, chapter 23), so trying every set of terms finds it; with three there are seven.
#include "compiler/cost/non_negative_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace pipec {
namespace {

// A pivot below this share of its term's squares: the terms before say the same.
constexpr double kSame = 1e-10;
// A sum of squares must be lower by more than this share for one more term.
constexpr double kLower = 1e-12;

// Normal equations of terms scaled so that each has squares that sum to 1.
struct Normal {
  double products[kFitTerms][kFitTerms] = {};
  double values[kFitTerms] = {};
  double scales[kFitTerms] = {};
};

Normal NormalEquations(absl::Span<const Observation> observations, double grain) {
  Normal normal;
  for (const Observation& o : observations) {
    const double weight = std::sqrt(o.weight) / std::max(o.value, grain);
    for (int i = 0; i < kFitTerms; ++i) {
      for (int j = 0; j < kFitTerms; ++j) normal.products[i][j] += o.terms[i] * weight * o.terms[j] * weight;
      normal.values[i] += o.terms[i] * weight * o.value * weight;
    }
  }
  for (int i = 0; i < kFitTerms; ++i) normal.scales[i] = std::sqrt(normal.products[i][i]);
  for (int i = 0; i < kFitTerms; ++i) {
    if (normal.scales[i] > 0) normal.values[i] /= normal.scales[i];
    for (int j = 0; j < kFitTerms; ++j) {
      const double scale = normal.scales[i] * normal.scales[j];
      if (scale > 0) normal.products[i][j] /= scale;
    }
  }
  return normal;
}

// The coefficients over the terms of `set`, by elimination without exchange (the matrix is positive definite).
// Nothing if they are not independent, or one is negative.
std::optional<FitTerms> SolveFor(int set, const Normal& normal) {
  int terms[kFitTerms], n = 0;
  for (int i = 0; i < kFitTerms; ++i) {
    if (set >> i & 1) terms[n++] = i;
  }
  double a[kFitTerms][kFitTerms], b[kFitTerms];
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) a[i][j] = normal.products[terms[i]][terms[j]];
    b[i] = normal.values[terms[i]];
  }
  for (int i = 0; i < n; ++i) {
    if (!(a[i][i] > kSame)) return std::nullopt;
    for (int k = i + 1; k < n; ++k) {
      const double factor = a[k][i] / a[i][i];
      for (int j = i; j < n; ++j) a[k][j] -= factor * a[i][j];
      b[k] -= factor * b[i];
    }
  }
  FitTerms solution = {};
  for (int i = n - 1; i >= 0; --i) {
    for (int j = i + 1; j < n; ++j) b[i] -= a[i][j] * b[j];
    b[i] /= a[i][i];
    if (!(b[i] >= 0)) return std::nullopt;
    solution[terms[i]] = b[i] / normal.scales[terms[i]];
  }
  return solution;
}

double SumOfSquares(const FitTerms& coefficients, absl::Span<const Observation> observations, double grain) {
  double sum = 0;
  for (const Observation& o : observations) {
    const double error = (SumOfTerms(coefficients, o.terms) - o.value) / std::max(o.value, grain);
    sum += o.weight * error * error;
  }
  return sum;
}

}  // namespace

double SumOfTerms(const FitTerms& coefficients, const FitTerms& terms) {
  double sum = 0;
  for (int i = 0; i < kFitTerms; ++i) sum += coefficients[i] * terms[i];
  return sum;
}

FitTerms FitNonNegative(absl::Span<const Observation> observations, double grain) {
  const Normal normal = NormalEquations(observations, grain);
  FitTerms best = {};
  double least = SumOfSquares(best, observations, grain);
  for (int set : {1, 2, 4, 3, 5, 6, 7}) {  // the fewest terms first
    const std::optional<FitTerms> solution = SolveFor(set, normal);
    if (!solution) continue;
    const double sum = SumOfSquares(*solution, observations, grain);
    if (sum < least * (1 - kLower)) {
      best = *solution;
      least = sum;
    }
  }
  return best;
}

}  // namespace pipec
