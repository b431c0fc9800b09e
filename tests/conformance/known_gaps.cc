#include "tests/conformance/known_gaps.h"

#include <fnmatch.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace pipec {

absl::StatusOr<std::vector<KnownGap>> ReadKnownGaps(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::vector<KnownGap> gaps;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    KnownGap gap;
    if (!(words >> gap.pattern)) continue;
    std::getline(words >> std::ws, gap.reason);
    if (gap.reason.empty())
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", gap.pattern, " has no reason"));
    gaps.push_back(gap);
  }
  return gaps;
}

const KnownGap* FindGap(const std::vector<KnownGap>& gaps, const std::string& test) {
  for (const KnownGap& gap : gaps) {
    if (fnmatch(gap.pattern.c_str(), test.c_str(), 0) == 0) return &gap;
  }
  return nullptr;
}

}  // namespace pipec
