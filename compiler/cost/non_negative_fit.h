// Least squares whose coefficients are not negative, for laws of up to three terms.
#pragma once

#include <array>

#include "absl/types/span.h"

namespace pipec {

constexpr int kFitTerms = 3;
using FitTerms = std::array<double, kFitTerms>;

struct Observation {
  FitTerms terms = {};
  double value = 0;   // at least 0
  double weight = 1;  // of its square
};

// The coefficients c, none below 0, with the least sum of weight ((c . terms - value) / max(value, grain))^2:
// errors are relative, so that small values count as much as large ones, and absolute below `grain` (above 0). All
// 0 without observations. Terms that say the same share nothing: the first of them has the coefficient.
//
// As no coefficient is negative, a law of terms that grow never falls, and never grows faster than its fastest term:
// beyond what was observed it stays between no growth and growth in proportion.
FitTerms FitNonNegative(absl::Span<const Observation> observations, double grain);

double SumOfTerms(const FitTerms& coefficients, const FitTerms& terms);

}  // namespace pipec
