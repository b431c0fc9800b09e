// The list of tests that are known not to pass, with reasons: lines "PATTERN REASON", # begins a comment.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pipec {

struct KnownGap {
  std::string pattern, reason;  // pattern: as of the shell
};

// InvalidArgument for a line without a reason.
absl::StatusOr<std::vector<KnownGap>> ReadKnownGaps(const std::string& path);

// Null if the test is in no line.
const KnownGap* FindGap(const std::vector<KnownGap>& gaps, const std::string& test);

}  // namespace pipec
