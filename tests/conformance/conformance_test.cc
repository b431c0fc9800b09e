// The CPU kernels against ONNX's own node tests: every test of a single node whose op has a kernel. What does
// not pass is in known_gaps.txt with the reason, and what is there must not pass. Operands are once unknown
// and once known at load.
#include <fnmatch.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "onnx/defs/schema.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cpu/kernel_registry.h"
#include "tests/conformance/node_test.h"

namespace pipec {
namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-7;  // the suite's own tolerances

struct Suite {
  std::vector<std::string> folders;     // tests to run
  std::map<std::string, int> left_out;  // reason -> tests
};

Suite FindTests() {
  Suite suite;
  std::set<std::string> folders;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(PIPEC_ONNX_NODE_TESTS, none)) {
    folders.insert(entry.path().string());
  }
  for (const std::string& folder : folders) {
    absl::StatusOr<onnx::ModelProto> model = ReadModel(folder);
    if (!model.ok()) {
      ++suite.left_out["a model that does not parse"];
      continue;
    }
    int opset = 0;
    for (const auto& import : model->opset_import()) {
      if (import.domain().empty()) opset = static_cast<int>(import.version());
    }
    const bool single = model->graph().node_size() == 1;
    const onnx::NodeProto node = single ? model->graph().node(0) : onnx::NodeProto();
    const auto* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), opset, node.domain());
    const auto* newest = onnx::OpSchemaRegistry::Schema(node.op_type(), node.domain());
    if (!single) {
      ++suite.left_out["more than one node"];
    } else if (cpu::Kernels().Find(node.op_type(), node.domain()) == nullptr) {
      ++suite.left_out["an op without a kernel of its own"];
    } else if (schema == nullptr || schema->since_version() != newest->since_version()) {
      ++suite.left_out["an older form of the op"];
    } else {
      suite.folders.push_back(folder);
    }
  }
  return suite;
}

const Suite& Tests() {
  static const Suite* const suite = new Suite(FindTests());
  return *suite;
}

struct Gap {
  std::string pattern, reason;
};

// Lines "pattern reason"; # begins a comment.
std::vector<Gap> KnownGaps() {
  std::vector<Gap> gaps;
  std::ifstream file(PIPEC_SOURCE_DIR "/tests/conformance/known_gaps.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    Gap gap;
    if (words >> gap.pattern) {
      std::getline(words >> std::ws, gap.reason);
      gaps.push_back(gap);
    }
  }
  return gaps;
}

std::string NameOf(const std::string& folder) { return folder.substr(folder.rfind('/') + 1); }

bool IsKnownGap(const std::string& name) {
  for (const Gap& gap : KnownGaps()) {
    if (fnmatch(gap.pattern.c_str(), name.c_str(), 0) == 0) return true;
  }
  return false;
}

template <typename T>
absl::Status CompareFloats(const HostTensor& got, const HostTensor& wanted) {
  for (int64_t i = 0; i < wanted.type.elements(); ++i) {
    T a, b;
    std::memcpy(&a, got.bytes.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&b, wanted.bytes.data() + i * sizeof(T), sizeof(T));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= kAbsolute + kRelative * std::abs(b))) {
      return absl::InternalError(absl::StrCat("element ", i, " is ", a, ", wanted ", b));
    }
  }
  return absl::OkStatus();
}

absl::Status Compare(const HostTensor& got, const HostTensor& wanted) {
  if (wanted.type.dtype == DType::kFloat32) return CompareFloats<float>(got, wanted);
  if (wanted.type.dtype == DType::kFloat64) return CompareFloats<double>(got, wanted);
  if (got.bytes == wanted.bytes) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("other contents than the expected ", ToString(wanted.type)));
}

absl::Status RunTest(NodeTest test, bool constants_known) {
  for (size_t k = 0; k < test.inputs.size() && constants_known; ++k) {
    if (!test.spec.inputs[k].present) continue;
    test.spec.inputs[k].constant = reinterpret_cast<const std::byte*>(test.inputs[k].bytes.data());
  }
  std::unique_ptr<Device> device = MakeCpuDevice(2);
  ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device->NewStream());
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, device->Prepare(test.spec));
  std::vector<const void*> inputs;
  for (size_t k = 0; k < test.inputs.size(); ++k) {
    inputs.push_back(test.spec.inputs[k].present ? test.inputs[k].bytes.data() : nullptr);
  }
  std::vector<HostTensor> results = test.expected;
  std::vector<void*> outputs;
  for (size_t k = 0; k < results.size(); ++k) {
    std::fill(results[k].bytes.begin(), results[k].bytes.end(), '\x7f');
    outputs.push_back(test.spec.outputs[k].present ? results[k].bytes.data() : nullptr);
  }
  std::string workspace(kernel->workspace_bytes() + 64, '\0');
  void* aligned = workspace.data() + 64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64;
  const StepScalars scalars;
  RETURN_IF_ERROR(kernel->Launch(*stream, {inputs.data(), outputs.data(), &scalars, aligned}));
  for (size_t k = 0; k < results.size(); ++k) RETURN_IF_ERROR(Compare(results[k], test.expected[k]));
  return absl::OkStatus();
}

absl::Status RunFolder(const std::string& folder) {
  ASSIGN_OR_RETURN(const onnx::ModelProto model, ReadModel(folder));
  ASSIGN_OR_RETURN(const NodeTest test, ReadNodeTest(folder, model));
  RETURN_IF_ERROR(RunTest(test, /*constants_known=*/false));
  return RunTest(test, /*constants_known=*/true);
}

class Conformance : public ::testing::TestWithParam<std::string> {};

TEST_P(Conformance, Passes) {
  const absl::Status status = RunFolder(GetParam());
  if (IsKnownGap(NameOf(GetParam()))) {
    EXPECT_FALSE(status.ok()) << "passes: take it out of known_gaps.txt";
  } else {
    EXPECT_TRUE(status.ok()) << status;
  }
}

INSTANTIATE_TEST_SUITE_P(Node, Conformance, ::testing::ValuesIn(Tests().folders),
                         [](const auto& info) { return NameOf(info.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);

TEST(ConformanceSuite, IsThere) {
  int gaps = 0;
  for (const std::string& folder : Tests().folders) gaps += IsKnownGap(NameOf(folder));
  std::cout << Tests().folders.size() << " tests, of which " << gaps << " are known gaps; left out:\n";
  for (const auto& [reason, tests] : Tests().left_out)
    std::cout << "  " << tests << " with " << reason << "\n";
  EXPECT_GE(Tests().folders.size(), 400u) << "in " PIPEC_ONNX_NODE_TESTS;
}

TEST(ConformanceSuite, GapsHaveReasonsAndExist) {
  for (const Gap& gap : KnownGaps()) {
    EXPECT_FALSE(gap.reason.empty()) << gap.pattern;
    bool found = false;
    for (const std::string& folder : Tests().folders) {
      found = found || fnmatch(gap.pattern.c_str(), NameOf(folder).c_str(), 0) == 0;
    }
    EXPECT_TRUE(found) << gap.pattern << " is the name of no test";
  }
}

}  // namespace
}  // namespace pipec
