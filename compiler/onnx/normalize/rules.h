// The rules by which older forms of ONNX ops become the newest, one family a file (FAMILY.cc), and
// what they are written with. The table that says which op's rule applies until which opset is in
// normalize.cc.
//
// A rule gets a node whose form is older than the opset it stands for in the table, and either changes
// `node.spec` to what the next form says, or adds nodes and sets `node.results`. Unimplemented where there is
// no counterpart.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/onnx/normalize/normalize.h"

namespace pipec {

struct NormalizeRule {
  absl::string_view op;
  int until;  // the opset that brought the newer form
  absl::Status (*apply)(PendingNode& node);
};

// By rising opset, where an op has several.
absl::Span<const NormalizeRule> NormalizeRules();

// attributes.cc: attributes that became operands.
absl::Status OldReduction(PendingNode& node);
absl::Status OldSqueeze(PendingNode& node);
absl::Status OldSplit(PendingNode& node);
absl::Status EqualSplit(PendingNode& node);
absl::Status OldSlice(PendingNode& node);
absl::Status OldClip(PendingNode& node);
absl::Status OldPad(PendingNode& node);
absl::Status OldTopK(PendingNode& node);
absl::Status OldDft(PendingNode& node);
absl::Status OldDropout(PendingNode& node);

// softmax.cc
absl::Status OldSoftmax(PendingNode& node);

// normalization.cc
absl::Status OldBatchNormalization(PendingNode& node);
absl::Status OldGroupNormalization(PendingNode& node);

// image.cc
absl::Status OldUpsample(PendingNode& node);
absl::Status OldResize(PendingNode& node);
absl::Status ResizeOperands(PendingNode& node);
absl::Status OldRoiAlign(PendingNode& node);
absl::Status OldGridSample(PendingNode& node);

// early.cc: other attributes and another name; most of them gone with opset 7.
absl::Status OldScatter(PendingNode& node);
absl::Status OldBroadcast(PendingNode& node);
absl::Status OldPRelu(PendingNode& node);
absl::Status OldGemm(PendingNode& node);
absl::Status OldCast(PendingNode& node);
absl::Status OldConcat(PendingNode& node);
absl::Status OldReshape(PendingNode& node);
absl::Status OldRecurrent(PendingNode& node);

// "WHAT of opset N is not supported; export with a newer opset".
absl::Status NoCounterpart(const PendingNode& node, absl::string_view what);

// "NODE/PART", for what a rule adds.
std::string NameOf(const PendingNode& node, absl::string_view part);

// Operands before `index` that are not there become absent ones.
void SetOperand(PendingNode& node, int index, Value* value);

// An attribute of integers becomes operand `index`, int64 [n]; absent stays absent.
void IntsToOperand(PendingNode& node, absl::string_view attribute, int index);

// A node before `node`, for rules that need several; its only result. `spec.name` is the part.
absl::StatusOr<Value*> AddBefore(PendingNode& node, NodeSpec spec);

absl::StatusOr<Value*> AddReshape(PendingNode& node, absl::string_view part, Value* value,
                                  absl::Span<const int64_t> shape);

absl::StatusOr<Value*> AddCast(PendingNode& node, absl::string_view part, Value* value, DType dtype);

}  // namespace pipec
