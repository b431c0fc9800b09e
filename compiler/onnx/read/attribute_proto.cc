#include "compiler/onnx/read/attribute_proto.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/read/sparse_tensor.h"
#include "compiler/onnx/read/tensor_data.h"
#include "runtime/base/status.h"
#include "runtime/base/tiny_types.h"

namespace pipec {
namespace {

// How each alternative of Attribute is written.
struct Writer {
  onnx::AttributeProto& proto;

  void operator()(int64_t v) const {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(v);
  }
  void operator()(float v) const {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(v);
  }
  void operator()(const std::string& v) const {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(v);
  }
  void operator()(const std::vector<int64_t>& v) const {
    proto.set_type(onnx::AttributeProto::INTS);
    proto.mutable_ints()->Add(v.begin(), v.end());
  }
  void operator()(const std::vector<float>& v) const {
    proto.set_type(onnx::AttributeProto::FLOATS);
    proto.mutable_floats()->Add(v.begin(), v.end());
  }
  void operator()(const std::vector<std::string>& v) const {
    proto.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& s : v) proto.add_strings(s);
  }
  void operator()(const TensorLiteral& v) const {
    proto.set_type(onnx::AttributeProto::TENSOR);
    *proto.mutable_t() = ToProto(v.type, *v.bytes);
  }
};

}  // namespace

absl::StatusOr<Attribute> FromProto(const onnx::AttributeProto& proto) {
  switch (proto.type()) {
    case onnx::AttributeProto::INT:
      return Attribute(proto.i());
    case onnx::AttributeProto::FLOAT:
      return Attribute(proto.f());
    case onnx::AttributeProto::STRING:
      return Attribute(proto.s());
    case onnx::AttributeProto::INTS:
      return Attribute(std::vector<int64_t>(proto.ints().begin(), proto.ints().end()));
    case onnx::AttributeProto::FLOATS:
      return Attribute(std::vector<float>(proto.floats().begin(), proto.floats().end()));
    case onnx::AttributeProto::STRINGS:
      return Attribute(std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
    case onnx::AttributeProto::TENSOR: {
      ASSIGN_OR_RETURN(Tensor tensor, ReadInlineTensor(proto.t()));
      return Attribute(TensorLiteral{std::move(tensor.type), std::move(tensor.data.bytes)});
    }
    case onnx::AttributeProto::SPARSE_TENSOR: {
      ASSIGN_OR_RETURN(Tensor tensor, Densify(proto.sparse_tensor()));
      return Attribute(TensorLiteral{std::move(tensor.type), std::move(tensor.data.bytes)});
    }
    default:
      return absl::UnimplementedError(absl::StrCat("attributes of type ",
                                                   onnx::AttributeProto::AttributeType_Name(proto.type()),
                                                   " are not supported"));
  }
}

onnx::AttributeProto ToProto(absl::string_view name, const Attribute& attribute) {
  onnx::AttributeProto proto;
  proto.set_name(std::string(name));
  std::visit(Writer{proto}, attribute);
  return proto;
}

onnx::TensorProto ToProto(const TensorType& type, absl::string_view bytes) {
  onnx::TensorProto proto;
  proto.set_data_type(static_cast<int>(type.dtype));
  proto.mutable_dims()->Add(type.shape.begin(), type.shape.end());
  if (BitsInFile(type.dtype) < 8) {
    proto.set_raw_data(PackElements(type.dtype, bytes));
  } else {
    proto.set_raw_data(bytes.data(), bytes.size());
  }
  return proto;
}

}  // namespace pipec
