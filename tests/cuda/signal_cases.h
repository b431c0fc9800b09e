// Random instructions of ops on images and signals: sampling, resizing, regions, transforms, norms of rows; Einsum
// and Det.
#pragma once

#include "tests/cuda/op_cases.h"

namespace pipec {

void AddSignalCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases);

}  // namespace pipec
