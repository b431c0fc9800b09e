// Random instructions of every op that has a CUDA kernel.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "tests/cuda/kernel_case.h"

namespace pipec {

using MakeCase = std::function<KernelCase(std::mt19937_64& random)>;

// By (domain, op).
const std::map<std::pair<std::string, std::string>, MakeCase>& OpCases();

}  // namespace pipec
