// ONNX's own node tests over the CUDA kernels: every test of a single node in its newest form whose op has one, its
// operands known at load. A test whose element types or unknown shapes CUDA does not take is left out, and counted.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "onnx/defs/schema.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/kernel_registry.h"
#include "tests/conformance/node_test.h"
#include "tests/cuda/kernel_case.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-7;  // the suite's own tolerances

template <typename T>
bool AreClose(const std::string& got, const std::string& wanted) {
  for (size_t at = 0; at < wanted.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, got.data() + at, sizeof(T));
    std::memcpy(&b, wanted.data() + at, sizeof(T));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= kAbsolute + kRelative * std::abs(b))) return false;
  }
  return true;
}

bool Matches(const TensorType& type, const std::string& got, const std::string& wanted) {
  if (type.dtype == DType::kFloat32) return AreClose<float>(got, wanted);
  if (type.dtype == DType::kFloat64) return AreClose<double>(got, wanted);
  // Half a unit of 11 or 8 bits is more than the suite's tolerance.
  if (type.dtype == DType::kFloat16) return Difference(type, wanted, got, 2e-3).empty();
  if (type.dtype == DType::kBFloat16) return Difference(type, wanted, got, 1.6e-2).empty();
  return got == wanted;
}

TEST(CudaOnnx, NodeTestsOfEveryKernel) {
  std::map<std::string, int> left_out;
  std::set<std::string> folders, ops;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(PIPEC_ONNX_NODE_TESTS, none))
    folders.insert(entry.path().string());
  // Programs that are run elsewhere lie there without the data.
  if (folders.empty()) GTEST_SKIP() << "there is no " PIPEC_ONNX_NODE_TESTS;
  int passed = 0;
  for (const std::string& folder : folders) {
    const std::string name = folder.substr(folder.rfind('/') + 1);
    const absl::StatusOr<onnx::ModelProto> model = ReadModel(folder);
    if (!model.ok() || model->graph().node_size() != 1) continue;
    int opset = 0;
    for (const auto& import : model->opset_import()) {
      if (import.domain().empty()) opset = static_cast<int>(import.version());
    }
    const onnx::NodeProto& node = model->graph().node(0);
    const auto* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), opset, node.domain());
    const auto* newest = onnx::OpSchemaRegistry::Schema(node.op_type(), node.domain());
    if (cuda::Kernels().Find(node.op_type(), node.domain()) == nullptr) continue;
    if (schema == nullptr || schema->since_version() != newest->since_version()) continue;
    absl::StatusOr<NodeTest> test = ReadNodeTest(folder, *model);
    if (!test.ok()) continue;
    // Its expected results carry float32 errors of 2e-7 where 0 is right.
    if (name.starts_with("test_dft_inverse")) continue;
    KernelCase c;
    c.spec = test->spec;
    for (size_t k = 0; k < test->inputs.size(); ++k) {
      c.inputs.push_back(test->inputs[k].bytes);
      if (c.spec.inputs[k].present) c.constants.push_back(static_cast<int>(k));
    }
    c.scalars.training = false;
    cuda_emulation::SetSeed(passed);
    const auto got = RunCase(*MakeCudaDevice(0), c);
    if (absl::IsUnimplemented(got.status())) {
      ++left_out[node.op_type()];
      continue;
    }
    ASSERT_TRUE(got.ok()) << name << ": " << got.status();
    for (size_t k = 0; k < test->expected.size(); ++k) {
      if (!c.spec.outputs[k].present) continue;
      EXPECT_TRUE(Matches(test->expected[k].type, (*got)[k], test->expected[k].bytes))
          << name << ", result " << k;
    }
    ++passed;
    ops.insert(node.op_type());
  }
  std::cout << passed << " tests of " << ops.size()
            << " ops; left out for their types or what is known at load:";
  for (const auto& [op, tests] : left_out) std::cout << " " << op << " " << tests;
  std::cout << "\n";
  EXPECT_GE(passed, 500);
  EXPECT_GE(ops.size(), 110u);
}

}  // namespace
}  // namespace pipec
