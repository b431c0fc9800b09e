// Whether a problem is one.
#pragma once

#include "absl/status/status.h"
#include "compiler/partition/problem.h"

namespace pipec {

// InvalidArgument that says which number is wrong.
absl::Status CheckProblem(const PartitionProblem& problem);

}  // namespace pipec
