// Random instructions of ops that look at whole channels: batch normalization, its gradients, running statistics.
#pragma once

#include "tests/cuda/op_cases.h"

namespace pipec {

void AddChannelCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases);

}  // namespace pipec
