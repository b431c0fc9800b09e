// Small models whose gradients gradient_rules_test.cc compares with differences, one family of ops a file
// (gradient_cases_*_test.cc).
#pragma once

#include <ostream>
#include <vector>

#include "small_model.h"

namespace pipec {

struct GradientCase {
  absl::string_view op;
  absl::string_view domain;
  absl::string_view what;
  // Outputs whose elements, weighted at random, make the loss; all parameters are checked.
  std::vector<Value*> (*build)(SmallModel& m);
  double step = 1e-5;
};

inline void PrintTo(const GradientCase& c, std::ostream* out) { *out << c.op << " " << c.what; }

std::vector<GradientCase> MathCases();
std::vector<GradientCase> LinearCases();
std::vector<GradientCase> SamplingCases();
std::vector<GradientCase> PlaceCases();
std::vector<GradientCase> WindowCases();
std::vector<GradientCase> AttentionCases();
std::vector<GradientCase> NormalizationCases();
std::vector<GradientCase> RecurrentCases();

// Those and the commonest (gradient_cases_basic_test.cc).
const std::vector<GradientCase>& AllGradientCases();

}  // namespace pipec
