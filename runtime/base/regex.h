// Regular expressions that users give.
#pragma once

#include <regex>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipec {

// ECMAScript. InvalidArgument names the pattern and what is wrong with it.
absl::StatusOr<std::regex> ParseRegex(absl::string_view pattern);

}  // namespace pipec
