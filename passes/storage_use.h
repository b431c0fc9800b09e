// What a storage is for, and which actions touch it.
#pragma once

#include <set>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "passes/storages.h"

namespace pipec {

// An action of any microbatch: kind, stage, stage at the other end (-1 unless a message).
using ActionOf = std::tuple<ActionKind, int, int>;

// The actions that touch a storage; what happens once a step has stage -1.
std::set<ActionOf> ActionsOf(const Storage& storage, const std::vector<Program>& programs);

// Whether nothing that a microbatch does touches it.
bool IsOfStep(const Storage& storage, const std::vector<Program>& programs);

BufferKind KindOf(const Storage& storage, const std::vector<Program>& programs);

// Forward nodes that depend on nothing but parameters that no forward node writes, and constants.
absl::flat_hash_set<const Node*> NodesOfWeights(const Graph& graph);

// Whether a storage that several actions of a microbatch share is the same for all microbatches (once_a_step.h).
bool IsMadeOfWeights(const Storage& storage, const absl::flat_hash_set<const Node*>& of_weights);

// Whether the storage is a parameter's that learns: the update's result lies there too.
bool Learns(const Storage& storage);

// Of the optimizer.
bool IsState(const Storage& storage);

}  // namespace pipec
