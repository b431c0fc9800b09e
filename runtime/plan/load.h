// Reads a plan from disk. A rank reads the manifest, its own file and its own slices of the parameters,
// nothing else.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/plan/manifest.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

// Errors name the file and what to do: no plan there, not a manifest, another format.
absl::StatusOr<Manifest> LoadManifest(const std::string& directory);

// Whether a directory is a plan, of this version of pipec or another.
bool IsPlan(const std::string& directory);

// Checks size and hash, parses, verifies (VerifyRankPlan, VerifyParameterFiles), compares with the manifest
// and checks linked parameters (linked_data.h).
absl::StatusOr<plan::RankPlan> LoadRankPlan(const std::string& directory, const Manifest& manifest, int rank);

// Where a parameter's file lies: `file` if that is absolute, else inside the plan.
std::string PlanPath(const std::string& directory, const std::string& file);

}  // namespace pipec
