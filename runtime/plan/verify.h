// Checks a plan against FORMAT.md, as if an enemy had written it. After VerifyRankPlan every index, offset
// and size of the rank's plan can be used without looking.
//
// Invariants of one rank (VerifyRankPlan):
//   counts        format, ranks, stages, microbatches are within limits; rank_of_stage names ranks
//   buffers       aligned, all slots inside the arena, slots as many as the class says
//   slot classes  M entries (train: none in mode infer), each below the number of slots
//   tensors       known dtype, size without overflow, aligned, inside their slot
//   versions      in an asynchronous plan a slot a weight version; only updates write them
//   programs      of a stage of this rank, operands in range, attributes well formed, no constant is written
//   messages      one end here and the other on the peer, in the direction of their kind, no two alike
//   actions       own programs and messages, microbatch in range, none twice; F once per stage and
//   microbatch, in order;
//                 B (or I, then W) after F, in order; every message once per microbatch; TIED and NORMS once
//                 a step; in an asynchronous plan the same of all rounds from the first step of a run to its last, and
//                 no action reads a weight version that is not made yet or is written over already
//   validation    where steps are validated late: nothing that cannot run twice stands in front, updates leave what
//                 they read
//   parameters    size as the tensor's, path inside the plan or absolute, one slot, distinct names and
//   indices constants, ports, scalars: sizes and types
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

// InvalidArgument, naming the element at fault.
absl::Status VerifyRankPlan(const plan::RankPlan& rank_plan);

// The parameters' slices lie inside their files.
absl::Status VerifyParameterFiles(const plan::RankPlan& rank_plan, const std::string& directory);

// All ranks of one plan, each verified already: they agree on counts; every message has its counterpart with
// equal dtypes and shapes; both lists complete when every send blocks until its receive is posted; from one rank to
// another messages are received in the order in which they are sent.
absl::Status VerifyPlan(absl::Span<const plan::RankPlan* const> rank_plans);

// The actions of a list as they run: once as it stands, or, of an asynchronous plan, the rounds of so many steps, from
// the first to the last.
struct ActionRun {
  int index;
  int step;
};
std::vector<ActionRun> RunsOf(const plan::RankPlan& rank_plan, bool training, int steps);

// "2F0", "0SEND_F3>2", "NORM": an action in the words of the design.
std::string ActionName(const plan::RankPlan& rank_plan, const plan::Action& action);

}  // namespace pipec
