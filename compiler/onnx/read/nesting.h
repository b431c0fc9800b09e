// How deep brackets are nested in ONNX text. The onnx library's parser is recursive and knows no limit.
#pragma once

#include "absl/strings/string_view.h"

namespace pipec {

// The deepest nesting of ( [ { < outside strings and comments; "=>" is no bracket. Brackets need not match.
int DeepestNesting(absl::string_view text);

}  // namespace pipec
