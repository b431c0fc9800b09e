// The whole plan, as no single rank reads it: for `piperun --verify`.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace pipec {

// Manifest, size and hash of every file and of every linked slice, every rank (LoadRankPlan), all ranks
// together (VerifyPlan). Errors name the file.
absl::Status CheckPlan(const std::string& directory);

}  // namespace pipec
