#include "compiler/emit/check_kernels.h"

#include <gmock/gmock.h>

#include "compiler/ops/op_info.h"

namespace pipec {
namespace {

using testing::HasSubstr;

// A module whose one rank runs one node.
absl::Status Check(const std::string& op, const std::string& domain, const std::string& device = "") {
  Module module;
  module.opset = 17;
  Value* x = module.graph.AddValue(ValueKind::kInput, "x", {DType::kFloat32, {2}});
  Node* node = module.graph.AddNode(
      {.op = op, .domain = domain, .name = "odd", .inputs = {x}, .outputs = {{DType::kFloat32, {2}}}});
  module.memory.resize(1);
  module.memory[0].programs.push_back({.nodes = {node}});
  Cluster cluster;
  if (device.empty()) return CheckKernels(module, nullptr);
  cluster.devices.push_back(*FindDevice(device));
  return CheckKernels(module, &cluster);
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

TEST(CheckKernels, AnOpThatCudaLacksIsRefusedForAGpuByNodeOpRankAndDevice) {
  // Nothing trains through it, and its result's size depends on data: no kernel of CUDA is to be expected.
  ASSERT_TRUE(HasKernel("cpu", "TfIdfVectorizer", ""));
  ASSERT_FALSE(HasKernel("cuda", "TfIdfVectorizer", ""));
  EXPECT_EQ(Check("TfIdfVectorizer", "", "cpu"), absl::OkStatus());
  EXPECT_EQ(Check("Relu", "", "h200"), absl::OkStatus());
  const absl::Status status = Check("TfIdfVectorizer", "", "h200");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(
          "node 'odd' (TfIdfVectorizer), opset 17: the CUDA device has no kernel for this op, and rank 0 "
          "is planned for h200; --device=cpu"));
  EXPECT_THAT(std::string(Check("NoKernel", "", "h200").message()), HasSubstr("no device has a kernel"));
}

}  // namespace
}  // namespace pipec
