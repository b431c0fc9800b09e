// A tensor in host memory: mapped from a file, or owned.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

struct HostArray {
  TensorType type;
  absl::string_view bytes;            // row-major
  std::shared_ptr<const void> owner;  // keeps `bytes` alive
};

using NamedArrays = std::map<std::string, HostArray>;

}  // namespace pipec
