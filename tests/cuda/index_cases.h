// Random instructions of ops with indices, and of ops that reckon places.
#pragma once

#include "tests/cuda/op_cases.h"

namespace pipec {

void AddIndexCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases);

}  // namespace pipec
