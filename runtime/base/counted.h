// Numbers of things, for people.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace pipec {

// "1 microbatch", "2 microbatches".
inline std::string Counted(int64_t number, absl::string_view one, absl::string_view more) {
  return absl::StrCat(number, " ", number == 1 ? one : more);
}

}  // namespace pipec
