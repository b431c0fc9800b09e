// Random instructions of attention and its gradient.
#pragma once

#include "tests/cuda/op_cases.h"

namespace pipec {

void AddAttentionCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases);

}  // namespace pipec
