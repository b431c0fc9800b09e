#include "compiler/onnx/schema/schema_context.h"

#include "compiler/onnx/read/attribute_proto.h"

namespace pipec {
namespace {

constexpr uint64_t kMaxContents = 64 * 1024;

}  // namespace

onnx::TypeProto ToProto(const TensorType& type) {
  onnx::TypeProto proto;
  auto* tensor = proto.mutable_tensor_type();
  tensor->set_elem_type(static_cast<int>(type.dtype));
  auto* shape = tensor->mutable_shape();
  for (int64_t dim : type.shape) shape->add_dim()->set_dim_value(dim);
  return proto;
}

SchemaContext::SchemaContext(const NodeSpec& spec, int outputs) : spec_(spec), outputs_(outputs) {
  inputs_.reserve(spec.inputs.size());
  for (const Value* input : spec.inputs) {
    if (input) {
      inputs_.push_back(ToProto(input->type));
    } else {
      inputs_.emplace_back();
    }
  }
}

const onnx::AttributeProto* SchemaContext::getAttribute(const std::string& name) const {
  for (const auto& made : attributes_) {
    if (made.name() == name) return &made;
  }
  for (const auto& [key, value] : spec_.attributes) {
    if (key == name) return &attributes_.emplace_back(ToProto(key, value));
  }
  return nullptr;
}

bool SchemaContext::hasInput(size_t index) const {
  return index < spec_.inputs.size() && spec_.inputs[index];
}

const onnx::TypeProto* SchemaContext::getInputType(size_t index) const {
  return hasInput(index) ? &inputs_[index] : nullptr;
}

const onnx::TensorProto* SchemaContext::getInputData(size_t index) const {
  if (!hasInput(index)) return nullptr;
  for (const auto& [made, proto] : data_) {
    if (made == index) return &proto;
  }
  const Value& value = *spec_.inputs[index];
  if (value.kind() != ValueKind::kConstant || !value.data.bytes || value.data.length > kMaxContents)
    return nullptr;
  return &data_.emplace_back(index, ToProto(value.type, *value.data.bytes)).second;
}

onnx::TypeProto* SchemaContext::getOutputType(size_t index) {
  return index < outputs_.size() ? &outputs_[index] : nullptr;
}

}  // namespace pipec
