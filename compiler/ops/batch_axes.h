// Batch axis rules that several op families share (OpInfo::batch_axis).
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "compiler/ops/op_info.h"

namespace pipec {

// Samples in a microbatch: the batch dimension of the first input that has one; 0 if none has.
int64_t SamplesOf(const Graph& graph);

int NoBatchAxis(const Node& node);

// Operands aligned at their last axes, as in NumPy's broadcasting; -1 if they disagree or the axis was
// broadcast.
int BroadcastBatchAxis(const Node& node);

// The axis of operand `k`, for a result of the same rank and order of axes.
int SameBatchAxis(const Node& node, int k = 0);

// The axis of operand 0 if the op works along another one, `along` (which may be negative); else -1.
int BatchAxisBeside(const Node& node, int64_t along);

// 0 if that is the batch axis of every batched operand, and these are all among `operands`; else -1.
int LeadingBatchAxis(const Node& node, std::initializer_list<int> operands);

// Of a reduction whose axes are operand 1.
int ReduceBatchAxis(const Node& node);

// Of the matrix product of operands `a` and `b`, leading axes broadcast; attributes trans_a and trans_b.
int ProductBatchAxis(const Node& node, int a, int b);

// A negative axis counted from the front.
int64_t NormalizeAxis(int64_t axis, int64_t rank);

// The contents of an int64 or int32 constant; nullopt if the value is not constant or its bytes are in a file.
std::optional<std::vector<int64_t>> ConstantInts(const Value* value);

}  // namespace pipec
