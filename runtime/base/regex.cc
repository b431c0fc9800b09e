#include "runtime/base/regex.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace pipec {

absl::StatusOr<std::regex> ParseRegex(absl::string_view pattern) {
  try {
    return std::regex(std::string(pattern));
  } catch (const std::regex_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", pattern, "' is no regular expression (ECMAScript): ", error.what()));
  }
}

}  // namespace pipec
