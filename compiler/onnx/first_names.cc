#include "compiler/onnx/first_names.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipec {

std::string FirstNames(const std::vector<std::string>& names) {
  constexpr size_t kShown = 4;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size()));
  return absl::StrCat(absl::StrJoin(names.begin(), end, ", "), names.size() > kShown ? ", ..." : "");
}

}  // namespace pipec
