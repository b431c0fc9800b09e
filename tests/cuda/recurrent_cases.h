// Random instructions of RNN, GRU, LSTM and their gradients.
#pragma once

#include "tests/cuda/op_cases.h"

namespace pipec {

void AddRecurrentCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases);

}  // namespace pipec
