// Messages quote what users and model files say. What is printed must not drive the terminal, nor bury the
// reader.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace pipec {

// At most about `most` bytes: beyond that the middle is left out, since what is at fault stands first and
// what would help stands last. Control characters but line ends, and bytes that are not UTF-8, are shown as
// \xNN.
std::string CleanText(absl::string_view text, size_t most);

}  // namespace pipec
