// Writes arrays as a NumPy .npz file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace pipec::samples {

struct Array {
  std::string name;
  std::string descr;  // NumPy's: "<f4", "<i8"
  std::vector<int64_t> shape;
  std::string bytes;  // row-major
};

absl::Status WriteNpz(const std::string& file, const std::vector<Array>& arrays);

}  // namespace pipec::samples
