// A test's model with its inputs written in, float ones as weights: what gradients are checked on.
#pragma once

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"
#include "tests/conformance/suite.h"

namespace pipec {

// No input is left. Float inputs become initializers; others, and operands that PyTorch does not differentiate in
// (running statistics, class weights, regions of interest, scales), become constants. Cancelled, with the reason, where
// nothing is left to differentiate in.
absl::StatusOr<onnx::ModelProto> ClosedModel(const onnx::ModelProto& model, const SuiteData& data);

}  // namespace pipec
