// Batch axis rules that several op families share (OpInfo::batch_axis).
#pragma once

#include <optional>
#include <vector>

#include "compiler/ops/op_info.h"

namespace pipec {

int NoBatchAxis(const Node& node);

// Operands aligned at their last axes, as in NumPy's broadcasting; -1 if they disagree or the axis was
// broadcast.
int BroadcastBatchAxis(const Node& node);

// The axis of operand `k`, for a result of the same rank and order of axes.
int SameBatchAxis(const Node& node, int k = 0);

// A negative axis counted from the front.
int64_t NormalizeAxis(int64_t axis, int64_t rank);

// The contents of an int64 constant; nullopt if the value is not constant or its bytes are in a file.
std::optional<std::vector<int64_t>> ConstantInts(const Value* value);

}  // namespace pipec
