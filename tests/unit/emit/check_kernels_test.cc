#include "compiler/emit/check_kernels.h"

#include <gmock/gmock.h>

namespace pipec {
namespace {

using testing::HasSubstr;

// A module whose one rank runs one node.
absl::Status Check(const std::string& op, const std::string& domain) {
  Module module;
  module.opset = 17;
  Value* x = module.graph.AddValue(ValueKind::kInput, "x", {DType::kFloat32, {2}});
  Node* node = module.graph.AddNode(
      {.op = op, .domain = domain, .name = "odd", .inputs = {x}, .outputs = {{DType::kFloat32, {2}}}});
  module.memory.resize(1);
  module.memory[0].programs.push_back({.nodes = {node}});
  return CheckKernels(module);
}

TEST(CheckKernels, AnOpThatNoDeviceRunsIsRefusedByNodeOpAndOpset) {
  EXPECT_EQ(Check("Relu", ""), absl::OkStatus());
  EXPECT_EQ(Check("Accumulate", kPipecDomain), absl::OkStatus());
  const absl::Status onnx = Check("NoKernel", "");
  EXPECT_EQ(onnx.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(onnx.message()),
              HasSubstr("node 'odd' (NoKernel), opset 17: no device has a kernel"));
  EXPECT_THAT(std::string(Check("NoKernel", kPipecDomain).message()),
              HasSubstr("(ai.pipec::NoKernel): no device"));
}

}  // namespace
}  // namespace pipec
