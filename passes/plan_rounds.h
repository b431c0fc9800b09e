// Memory of a rank whose steps overlap (compiler/schedule/rounds.h).
#pragma once

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "passes/storages.h"

namespace pipec {

// Gives every storage its place. What has slots has them one after the other and takes them in turn
// (round_slots.h); only what one program makes and uses up has an end. `memory` has its programs.
absl::Status PlanRounds(const Module& module, int rank, const std::vector<Storage>& storages,
                        const absl::flat_hash_set<const Node*>& of_weights, RankMemory& memory);

}  // namespace pipec
