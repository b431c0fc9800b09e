// Results that lie on operands: only where the op allows it.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/module.h"

namespace pipec {

// Of a rank whose memory is laid out. Internal, naming node and values, if a result of an instruction lies on bytes
// of one of its operands, in any microbatch, and the op's row (compiler/ops, Alias) does not say that it may lie
// just there; if one that has to lie on an operand does not, or any other lies in a buffer that keeps its contents;
// or if two results of an instruction overlap. A replay of contents (compiler/ir/replay.h) sees none of these: it
// reads all operands before it writes.
absl::Status CheckInPlace(const RankMemory& memory);

}  // namespace pipec
