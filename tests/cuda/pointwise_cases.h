// Random instructions of element-wise ops.
#pragma once

#include "tests/cuda/op_cases.h"

namespace pipec {

void AddPointwiseCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases);

}  // namespace pipec
