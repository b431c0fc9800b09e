#include "tests/conformance/suite.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<Tensor> ReadTensor(const std::string& path, const onnx::ValueInfoProto& info) {
  if (!info.type().has_tensor_type()) {
    return absl::UnimplementedError(absl::StrCat("'", info.name(), "' is no tensor"));
  }
  std::ifstream file(path, std::ios::binary);
  onnx::TensorProto proto;
  if (!file || !proto.ParseFromIstream(&file)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  }
  absl::StatusOr<Tensor> tensor = ReadInlineTensor(proto);
  if (!tensor.ok()) {
    return absl::Status(tensor.status().code(),
                        absl::StrCat("'", info.name(), "': ", tensor.status().message()));
  }
  return tensor;
}

// arange(n) / n, in the shape that the model declares.
absl::StatusOr<Tensor> Ramp(const onnx::ValueInfoProto& info) {
  Tensor tensor;
  tensor.type.dtype = DType::kFloat32;
  for (const auto& dim : info.type().tensor_type().shape().dim())
    tensor.type.shape.push_back(dim.dim_value());
  const int64_t n = tensor.type.elements();
  std::string bytes(tensor.type.bytes(), '\0');
  for (int64_t i = 0; i < n; ++i) {
    const float value = static_cast<float>(i) / static_cast<float>(n);
    std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(float));
  }
  tensor.data.length = bytes.size();
  tensor.data.bytes = std::make_shared<const std::string>(std::move(bytes));
  return tensor;
}

std::vector<const onnx::ValueInfoProto*> DataInputs(const onnx::GraphProto& graph) {
  std::set<std::string> initializers;
  for (const auto& initializer : graph.initializer()) initializers.insert(initializer.name());
  std::vector<const onnx::ValueInfoProto*> inputs;
  for (const auto& input : graph.input()) {
    if (!initializers.contains(input.name())) inputs.push_back(&input);
  }
  return inputs;
}

}  // namespace

absl::StatusOr<std::vector<SuiteTest>> FindTests(const std::string& folder) {
  std::vector<SuiteTest> tests;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string path = entry.path().string(), name = entry.path().filename().string();
    if (fs::exists(path + "/model.onnx", none)) {
      tests.push_back({name, path + "/model.onnx", path + "/test_data_set_0/"});
    } else if (absl::StartsWith(name, "light_") && absl::EndsWith(name, ".onnx")) {
      tests.push_back({entry.path().stem().string(), path, ""});
    }
  }
  if (tests.empty()) return absl::NotFoundError(absl::StrCat("'", folder, "' holds no test"));
  std::sort(tests.begin(), tests.end(),
            [](const SuiteTest& a, const SuiteTest& b) { return a.name < b.name; });
  return tests;
}

absl::StatusOr<SuiteData> ReadData(const SuiteTest& test, const onnx::ModelProto& model) {
  const bool whole = test.data.empty();
  const std::string stem = whole ? test.model.substr(0, test.model.size() - 5) + "_" : test.data;
  SuiteData data;
  for (const onnx::ValueInfoProto* info : DataInputs(model.graph())) {
    const std::string path = absl::StrCat(stem, "input_", data.inputs.size(), ".pb");
    ASSIGN_OR_RETURN(Tensor tensor, whole ? Ramp(*info) : ReadTensor(path, *info));
    data.inputs.push_back({info->name(), std::move(tensor)});
  }
  for (const onnx::ValueInfoProto& info : model.graph().output()) {
    ASSIGN_OR_RETURN(Tensor tensor,
                     ReadTensor(absl::StrCat(stem, "output_", data.outputs.size(), ".pb"), info));
    data.outputs.push_back({info.name(), std::move(tensor)});
  }
  return data;
}

}  // namespace pipec
