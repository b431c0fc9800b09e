#include "tests/conformance/node_test.h"

#include <cstring>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/base/tiny_types.h"

namespace pipec {
namespace {

template <typename Message>
absl::StatusOr<Message> ReadMessage(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Message message;
  if (!message.ParseFromIstream(&file)) return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  return message;
}

// Typed fields hold one element an entry, wider than it if it is small.
template <typename T, typename Field>
std::string Narrow(const Field& field) {
  std::string bytes(field.size() * sizeof(T), '\0');
  for (int i = 0; i < field.size(); ++i) {
    const T value = static_cast<T>(field.Get(i));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

absl::StatusOr<std::string> Contents(const onnx::TensorProto& tensor, DType dtype) {
  if (tensor.has_raw_data()) return tensor.raw_data();
  switch (dtype) {
    case DType::kFloat32:
      return Narrow<float>(tensor.float_data());
    case DType::kFloat64:
      return Narrow<double>(tensor.double_data());
    case DType::kInt64:
      return Narrow<int64_t>(tensor.int64_data());
    case DType::kUint64:
      return Narrow<uint64_t>(tensor.uint64_data());
    case DType::kUint32:
      return Narrow<uint32_t>(tensor.uint64_data());
    case DType::kInt32:
      return Narrow<int32_t>(tensor.int32_data());
    default:
      return SizeOf(dtype) == 1 ? Narrow<uint8_t>(tensor.int32_data())
                                : Narrow<uint16_t>(tensor.int32_data());
  }
}

absl::StatusOr<HostTensor> ToHost(const onnx::TensorProto& tensor) {
  const auto dtype = static_cast<DType>(tensor.data_type());
  if (SizeOf(dtype) == 0) {
    return absl::UnimplementedError(absl::StrCat("element type ", tensor.data_type(), " of ONNX"));
  }
  HostTensor host{{dtype, Shape(tensor.dims().begin(), tensor.dims().end())}, {}};
  ASSIGN_OR_RETURN(host.bytes, Contents(tensor, dtype));
  if (BitsInFile(dtype) < 8 && host.bytes.size() == BytesInFile(dtype, host.type.elements())) {
    host.bytes = UnpackElements(dtype, host.bytes, host.type.elements());
  }
  if (static_cast<int64_t>(host.bytes.size()) != host.type.bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor ", ToString(host.type), " of ", host.bytes.size(), " bytes"));
  }
  return host;
}

absl::StatusOr<Attribute> ToAttribute(const onnx::AttributeProto& a) {
  switch (a.type()) {
    case onnx::AttributeProto::INT:
      return Attribute(a.i());
    case onnx::AttributeProto::FLOAT:
      return Attribute(a.f());
    case onnx::AttributeProto::STRING:
      return Attribute(a.s());
    case onnx::AttributeProto::INTS:
      return Attribute(std::vector<int64_t>(a.ints().begin(), a.ints().end()));
    case onnx::AttributeProto::FLOATS:
      return Attribute(std::vector<float>(a.floats().begin(), a.floats().end()));
    case onnx::AttributeProto::TENSOR: {
      ASSIGN_OR_RETURN(HostTensor tensor, ToHost(a.t()));
      return Attribute(
          TensorLiteral{tensor.type, std::make_shared<const std::string>(std::move(tensor.bytes))});
    }
    default:
      return absl::UnimplementedError(absl::StrCat("attribute '", a.name(), "' of type ", a.type()));
  }
}

// The data set's tensors by the names that the graph gives them.
template <typename Values>
absl::StatusOr<std::map<std::string, HostTensor>> ReadTensors(const std::string& prefix,
                                                              const Values& values) {
  std::map<std::string, HostTensor> tensors;
  for (int k = 0; k < values.size(); ++k) {
    if (!values.Get(k).type().has_tensor_type()) {
      return absl::UnimplementedError(absl::StrCat("'", values.Get(k).name(), "' is no tensor"));
    }
    ASSIGN_OR_RETURN(const auto proto, ReadMessage<onnx::TensorProto>(absl::StrCat(prefix, k, ".pb")));
    ASSIGN_OR_RETURN(tensors[values.Get(k).name()], ToHost(proto));
  }
  return tensors;
}

}  // namespace

absl::StatusOr<onnx::ModelProto> ReadModel(const std::string& folder) {
  return ReadMessage<onnx::ModelProto>(absl::StrCat(folder, "/model.onnx"));
}

absl::StatusOr<NodeTest> ReadNodeTest(const std::string& folder, const onnx::ModelProto& model) {
  const onnx::GraphProto& graph = model.graph();
  const std::string data = absl::StrCat(folder, "/test_data_set_0/");
  ASSIGN_OR_RETURN(auto inputs, ReadTensors(data + "input_", graph.input()));
  ASSIGN_OR_RETURN(auto outputs, ReadTensors(data + "output_", graph.output()));
  const onnx::NodeProto& node = graph.node(0);
  NodeTest test;
  test.spec.op = node.op_type();
  test.spec.domain = node.domain();
  test.spec.name = folder.substr(folder.rfind('/') + 1);
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    ASSIGN_OR_RETURN(Attribute value, ToAttribute(attribute));
    test.spec.attributes.Set(attribute.name(), std::move(value));
  }
  for (const std::string& name : node.input()) {
    const HostTensor& tensor = inputs[name];
    test.spec.inputs.push_back({tensor.type, !name.empty()});
    test.inputs.push_back(tensor);
  }
  for (const std::string& name : node.output()) {
    const bool present = outputs.count(name) > 0;
    test.spec.outputs.push_back({present ? outputs[name].type : TensorType(), present});
    test.expected.push_back(present ? outputs[name] : HostTensor());
  }
  return test;
}

}  // namespace pipec
