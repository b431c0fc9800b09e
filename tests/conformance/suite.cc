#include "tests/conformance/suite.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "onnx/onnx-data.pb.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

absl::Status AddTensor(const onnx::TensorProto& proto, const std::string& name,
                       std::vector<NamedTensor>& tensors) {
  absl::StatusOr<Tensor> tensor = ReadInlineTensor(proto);
  if (!tensor.ok()) {
    return absl::Status(tensor.status().code(), absl::StrCat("'", name, "': ", tensor.status().message()));
  }
  tensors.push_back({name, *std::move(tensor)});
  return absl::OkStatus();
}

template <typename Proto>
absl::StatusOr<Proto> Parse(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Proto proto;
  if (!file || !proto.ParseFromIstream(&file)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  }
  return proto;
}

absl::Status AddSequence(const onnx::SequenceProto& proto, const std::string& name, SuiteData& data,
                         std::vector<NamedTensor>& tensors) {
  data.dims[absl::StrCat(name, ":length")] = proto.tensor_values_size();
  for (int i = 0; i < proto.tensor_values_size(); ++i) {
    RETURN_IF_ERROR(AddTensor(proto.tensor_values(i), absl::StrCat(name, ".", i), tensors));
  }
  return absl::OkStatus();
}

// The tensors of a file of the declared type, and in data.dims what of it is no tensor.
absl::Status AddFile(const std::string& path, const onnx::ValueInfoProto& info, SuiteData& data,
                     std::vector<NamedTensor>& tensors) {
  const std::string& name = info.name();
  if (info.type().has_sequence_type()) {
    ASSIGN_OR_RETURN(const auto proto, Parse<onnx::SequenceProto>(path));
    return AddSequence(proto, name, data, tensors);
  }
  if (info.type().has_optional_type()) {
    ASSIGN_OR_RETURN(const auto proto, Parse<onnx::OptionalProto>(path));
    if (proto.has_sequence_value()) return AddSequence(proto.sequence_value(), name, data, tensors);
    if (proto.has_tensor_value()) return AddTensor(proto.tensor_value(), name, tensors);
    data.dims[absl::StrCat(name, ":present")] = 0;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const auto proto, Parse<onnx::TensorProto>(path));
  return AddTensor(proto, name, tensors);
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
  int k = 0;
  for (const onnx::ValueInfoProto* info : DataInputs(model.graph())) {
    if (whole) {
      ASSIGN_OR_RETURN(Tensor tensor, Ramp(*info));
      data.inputs.push_back({info->name(), std::move(tensor)});
    } else {
      RETURN_IF_ERROR(AddFile(absl::StrCat(stem, "input_", k++, ".pb"), *info, data, data.inputs));
    }
  }
  SuiteData expected;
  k = 0;
  for (const onnx::ValueInfoProto& info : model.graph().output()) {
    RETURN_IF_ERROR(AddFile(absl::StrCat(stem, "output_", k++, ".pb"), info, expected, data.outputs));
  }
  return data;
}

}  // namespace pipec
