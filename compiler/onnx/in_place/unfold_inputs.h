// Inputs that are sequences or optionals: the tensors that they stand for become inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/scope.h"
#include "onnx/onnx_pb.h"

namespace pipec {

struct UnfoldedInput {
  std::string name;
  bool present = true;                // an optional may have no element
  DType dtype = DType::kUndefined;    // of the elements
  std::vector<std::string> elements;  // the inputs that a sequence stands for
};

// In `graph` an input NAME that is a sequence becomes the inputs NAME.0, NAME.1, ...: as many as `dims` says
// for NAME:length, each of the declared type, or with a size of its own along an axis where `dims` has
// NAME.0:AXIS. An optional becomes its element, or nothing where `dims` has 0 for NAME:present. What is used
// up of `dims` is taken out. Inputs of another name are left alone. InvalidArgument, naming input and flag,
// if the length is not given.
absl::StatusOr<std::vector<UnfoldedInput>> UnfoldInputs(onnx::GraphProto& graph,
                                                        std::map<std::string, int64_t>& dims);

// Gives the names their meaning, when those of the elements have theirs.
void NameUnfolded(const std::vector<UnfoldedInput>& inputs, Scope& scope);

}  // namespace pipec
