// One instruction with operands, and its results on a device.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

struct KernelCase {
  KernelSpec spec;
  std::vector<std::string> inputs;  // contents; "" where absent
  std::vector<int> in_place;        // of each output: the input it lies on, -1: none; may be shorter
  std::vector<int> constants;       // inputs whose contents are known at load
  StepScalars scalars;              // but for `parameters`
  std::vector<ParameterScalars> parameters;
};

// Contents of every output. Each operand is an allocation of its own, as large as it is, or begins so many bytes behind
// the begin of one.
absl::StatusOr<std::vector<std::string>> RunCase(Device& device, const KernelCase& kernel_case, int64_t behind = 0);

// "" if every element of `got` is `wanted` within tolerance * (1 + |wanted|); else the worst one in words. Integers
// must be equal.
std::string Difference(const TensorType& type, const std::string& wanted, const std::string& got,
                       double tolerance);

// Random elements: floats in [-2, 2), or [0.1, 2) if `positive`; integers in [-20, 20], or [1, 20]; either bool.
std::string RandomContents(const TensorType& type, std::mt19937_64& random, bool positive = false);
// Numbers of float64 as elements of a float type.
std::string Converted(const std::string& numbers, const TensorType& type);

}  // namespace pipec
