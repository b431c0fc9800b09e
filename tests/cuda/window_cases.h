// Random instructions of ops that slide windows: convolutions, pooling, and their gradients.
#pragma once

#include "tests/cuda/op_cases.h"

namespace pipec {

void AddWindowCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases);

}  // namespace pipec
