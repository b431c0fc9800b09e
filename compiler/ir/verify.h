// One verifier a level (DESIGN.md, "Levels and their verifiers"); each opens with the list of what it refuses.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/module.h"

namespace pipec {

// Checks everything that the module's level promises, lower levels included.
absl::Status Verify(const Module& module);

absl::Status VerifyModel(const Module& module);
absl::Status VerifyTraining(const Module& module);
absl::Status VerifyStaged(const Module& module);
absl::Status VerifyScheduled(const Module& module);
absl::Status VerifyPlanned(const Module& module);

}  // namespace pipec
