// Random instructions of ops that look at whole rows: reductions, softmax, losses, normalisations.
#pragma once

#include "tests/cuda/op_cases.h"

namespace pipec {

void AddRowCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases);

}  // namespace pipec
