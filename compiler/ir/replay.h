// A rank's list of actions, run on a model of its arena that remembers contents by name instead of holding
// them.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/module.h"

namespace pipec {

// Internal if an instruction or a send reads bytes that do not hold the operand, of its microbatch; if a buffer
// that keeps its contents (parameter, accumulator, state, constant) is written by anything but its update, or does
// not hold them at the end; or if an action has no program. Uses only what a plan holds: places, slots and the
// order of the actions; no lifetimes. Locations must be valid (verify_planned.cc checks them first). Of a schedule
// without flush some steps are run, from an empty pipeline to an empty one; then what weight version an operand is
// of, and what step an accumulator, counts too. Where a step is validated late two steps are run, with the first
// one's update right and made again.
absl::Status Replay(const Module& module, int rank, const Schedule& schedule, bool training);

}  // namespace pipec
