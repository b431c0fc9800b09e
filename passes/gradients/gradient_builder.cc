#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/schema/infer.h"
#include "passes/evaluate.h"
#include "passes/gradients/gradient.h"
#include "runtime/base/small_floats.h"

namespace pipec {
namespace {

// The constant of this name, type and contents, made if it is not there yet.
Value* SharedConstant(Graph& graph, absl::string_view name, const TensorType& type, std::string bytes) {
  Value* known = graph.FindValue(name);
  if (known && known->kind() == ValueKind::kConstant && known->type == type && known->data.bytes &&
      *known->data.bytes == bytes) {
    return known;
  }
  return graph.AddConstant(name, type, std::move(bytes));
}

template <typename T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

Value* GradientBuilder::Emit(absl::string_view op, std::vector<Value*> inputs, Attributes attributes,
                             absl::string_view domain) {
  return EmitAll(op, std::move(inputs), std::move(attributes), domain, 1)[0];
}

std::vector<Value*> GradientBuilder::EmitAll(absl::string_view op, std::vector<Value*> inputs,
                                             Attributes attributes, absl::string_view domain, int outputs) {
  if (!status_.ok()) return std::vector<Value*>(outputs);
  NodeSpec spec{.op = std::string(op),
                .domain = std::string(domain),
                .name = absl::StrCat(forward_->name(), ".grad"),
                .inputs = std::move(inputs),
                .attributes = std::move(attributes),
                .kind = Kind::kI,
                .origin = forward_};
  absl::StatusOr<std::vector<TensorType>> types = InferTypes(spec, outputs);
  if (!types.ok()) {
    Fail(types.status());
    return std::vector<Value*>(outputs);
  }
  spec.outputs = *std::move(types);
  const Node* node = graph_.AddNode(std::move(spec));
  return {node->outputs().begin(), node->outputs().end()};
}

Value* GradientBuilder::RequireOutput(int i) {
  const int known = static_cast<int>(forward_->outputs().size());
  if (i < known) {
    if (!output(i))
      Fail(absl::UnimplementedError(absl::StrCat("output ", i, " is needed but marked as absent")));
    return output(i);
  }
  NodeSpec spec{.op = forward_->op(),
                .domain = forward_->domain(),
                .inputs = {forward_->inputs().begin(), forward_->inputs().end()},
                .attributes = forward_->attributes};
  absl::StatusOr<std::vector<TensorType>> types = InferTypes(spec, i + 1);
  if (!types.ok()) {
    Fail(types.status());
    return nullptr;
  }
  for (int k = known; k <= i; ++k) graph_.AddOutput(forward_, (*types)[k]);
  return output(i);
}

Value* GradientBuilder::Zeros(const TensorType& type) {
  return Emit("Expand", {Scalar(type.dtype, 0), Ints(type.shape)});
}

Value* GradientBuilder::Reshape(Value* value, absl::Span<const int64_t> shape) {
  if (!value || absl::Span<const int64_t>(value->type.shape) == shape) return value;
  Attributes attributes;
  attributes.Set("allowzero", int64_t{1});  // a dimension of 0 is meant as one
  return Emit("Reshape", {value, Ints(shape)}, std::move(attributes));
}

Value* GradientBuilder::Scalar(DType dtype, double value) {
  if (!IsFloat(dtype)) {
    Fail(absl::UnimplementedError(absl::StrCat("gradients in ", Name(dtype), "; wanted a float type")));
    return nullptr;
  }
  std::string bytes = dtype == DType::kFloat64   ? Bytes(value)
                      : dtype == DType::kFloat32 ? Bytes(static_cast<float>(value))
                                                 : RoundToSmallFloats(dtype, {static_cast<float>(value)});
  return SharedConstant(graph_, absl::StrFormat("scalar:%s:%.17g", Name(dtype), value), {dtype, {}},
                        std::move(bytes));
}

Value* GradientBuilder::Int(int64_t value) {
  return SharedConstant(graph_, absl::StrCat("int:", value), {DType::kInt64, {}}, Bytes(value));
}

Value* GradientBuilder::Ints(absl::Span<const int64_t> values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  return SharedConstant(graph_, absl::StrCat("ints:", ToString(values)),
                        {DType::kInt64, {static_cast<int64_t>(values.size())}}, std::move(bytes));
}

Value* GradientBuilder::Floats(absl::Span<const float> values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return SharedConstant(graph_, absl::StrCat("floats:", absl::StrJoin(values, ",")),
                        {DType::kFloat32, {static_cast<int64_t>(values.size())}}, std::move(bytes));
}

Value* GradientBuilder::SumToShape(Value* gradient, absl::Span<const int64_t> shape) {
  if (!gradient) return nullptr;
  const Shape& from = gradient->type.shape;
  const int leading = static_cast<int>(from.size() - shape.size());
  std::vector<int64_t> axes;
  for (int i = 0; i < from.size(); ++i) {
    if (i < leading || (shape[i - leading] == 1 && from[i] != 1)) axes.push_back(i);
  }
  if (axes.empty()) return gradient;
  Attributes attributes;
  attributes.Set("keepdims", int64_t{leading == 0});
  return Reshape(Emit("ReduceSum", {gradient, Ints(axes)}, std::move(attributes)), shape);
}

std::vector<int64_t> GradientBuilder::ConstantInts(Value* value) {
  const bool narrow = value->type.dtype == DType::kInt32;
  if (value->kind() != ValueKind::kConstant || (value->type.dtype != DType::kInt64 && !narrow)) {
    Fail(absl::UnimplementedError(
        absl::StrCat("operand '", value->name(), "' is not a constant of type int64 or int32")));
    return {};
  }
  absl::StatusOr<std::string> bytes = ReadData(*value);
  if (!bytes.ok()) {
    Fail(bytes.status());
    return {};
  }
  if (narrow) {
    std::vector<int32_t> ints(bytes->size() / sizeof(int32_t));
    std::memcpy(ints.data(), bytes->data(), bytes->size());
    return {ints.begin(), ints.end()};
  }
  std::vector<int64_t> ints(bytes->size() / sizeof(int64_t));
  std::memcpy(ints.data(), bytes->data(), ints.size() * sizeof(int64_t));
  return ints;
}

}  // namespace pipec
