// The most bytes that are live at once on a rank, counted from nothing but its plan.
#pragma once

#include <cstdint>

#include "runtime/plan/plan.pb.h"

namespace pipec {

// No way of placing what the plan computes in its order needs a smaller arena. Of the training list, or that of
// inference, instruction by instruction; only synchronous plans. Bytes live
//  - of buffers that keep their contents (parameters, gradients, optimizer state, constants): always,
//  - of an instruction's result: from that instruction to the last that reads them,
//  - of an input: from the beginning of the first action of its microbatch that reads or sends it,
//  - of a received message: from the action that posts the receive to the last read; of NORM, which posts behind
//    its program, from
//    its end,
//  - of a sent message: until it has arrived in the plan's modelled times, to the end of the last computation that
//    begins before,
//  - of an output: to the end of the last action that writes it; of what the driver reads and what a late
//    validation reads again:
//    to the end of the list, and of the latter also up to where the next step validates.
// Bytes that a later write covers are those of another value.
int64_t LiveSum(const plan::RankPlan& rank_plan);

}  // namespace pipec
