// Random instructions of ops that move elements.
#pragma once

#include "tests/cuda/op_cases.h"

namespace pipec {

void AddMoveCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases);

}  // namespace pipec
