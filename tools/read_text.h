// Files that flags name, as a whole.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipec {

// NotFound with the flag, the path and the reason if it cannot be read.
absl::StatusOr<std::string> ReadText(absl::string_view flag, const std::string& path);

}  // namespace pipec
