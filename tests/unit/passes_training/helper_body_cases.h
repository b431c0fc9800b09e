// Single helper nodes whose kernels and ONNX bodies helper_bodies_test.cc compares.
#pragma once

#include <vector>

#include "small_model.h"

namespace pipec {

struct HelperCase {
  absl::string_view op;
  std::vector<Value*> (*build)(SmallModel& m);  // the node's results
};

std::vector<HelperCase> HelperCases();

}  // namespace pipec
