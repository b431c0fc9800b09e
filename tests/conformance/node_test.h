// ONNX's backend node tests (test/model.onnx, test/test_data_set_0/{input,output}_k.pb) as instructions with
// operands and expected results.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/device.h"

namespace pipec {

struct HostTensor {
  TensorType type;
  std::string bytes;
};

struct NodeTest {
  KernelSpec spec;
  std::vector<HostTensor> inputs, expected;  // by operand; empty where an operand is absent
};

absl::StatusOr<onnx::ModelProto> ReadModel(const std::string& folder);

// The folder's test, whose model has one node. Unimplemented if the runtime has no such element or attribute
// type; InvalidArgument if the folder does not hold what it should.
absl::StatusOr<NodeTest> ReadNodeTest(const std::string& folder, const onnx::ModelProto& model);

}  // namespace pipec
