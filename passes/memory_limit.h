// Whether the memory of a plan fits its devices.
#pragma once

#include <set>
#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/check_memory.h"
#include "passes/pass.h"
#include "passes/storage_use.h"

namespace pipec {

// By rank, bytes; the largest number there is where a device sets no limit.
std::vector<int64_t> MemoryLimits(const Cluster& cluster);

// Adds a buffer of so many bytes a microbatch, touched by these actions, to what its stage keeps in flight; one that no
// forward and no input gradient leaves to a later action is nothing that is kept.
void AddKept(const std::set<ActionOf>& actions, int64_t bytes, std::vector<KeptBytes>& stages);

// ResourceExhausted if a rank is above its device's limit: what the one needs that is most beyond, and the action
// at which the limit is passed. `kept`: by stage; all else that a rank's arena holds it holds always, and its
// workspace.
absl::Status CheckMemoryLimit(const Module& module, const CompileOptions& options,
                              std::vector<KeptBytes> kept);

}  // namespace pipec
