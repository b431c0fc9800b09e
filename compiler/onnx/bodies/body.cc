#include "compiler/onnx/bodies/body.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/onnx/read/attribute_proto.h"
#include "compiler/ops/casts.h"
#include "runtime/base/small_floats.h"

namespace pipec {
namespace {

template <typename T>
std::string BytesOf(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

Body::Body(const Node& node, absl::string_view operands, absl::string_view scalars) : node_(node) {
  const std::vector<std::string> names = absl::StrSplit(operands, ' ', absl::SkipEmpty());
  for (int i = 0; i < OwnOperands(node); ++i) {
    const bool counted = i + 1 >= static_cast<int>(names.size()) && names.back().back() == '*';
    const int first = static_cast<int>(names.size()) - 1;
    operands_.push_back(counted ? absl::StrCat(absl::StripSuffix(names.back(), "*"), i - first) : names[i]);
    function_.add_input(operands_.back());
  }
  for (int i = OwnOperands(node); i < static_cast<int>(node.inputs().size()); ++i) {
    sums_.push_back(absl::StrCat("sum", sums_.size()));
    function_.add_input(sums_.back());
  }
  for (absl::string_view scalar : absl::StrSplit(scalars, ' ', absl::SkipEmpty())) {
    function_.add_input(std::string(scalar));
  }
  for (const auto& [name, value] : node.attributes) function_.add_attribute(name);
  results_.resize(node.outputs().size());
  for (const Value* operand : node.inputs()) types_.push_back(operand ? operand->type : TensorType{});
  const OwnCasts* const casts = OwnCastsOf(node.op(), node.domain());
  if (!casts || !node.attributes.Has(kCastTo)) return;
  for (int k = casts->first; k <= casts->last; ++k) {
    if (!has(k) || !IsSmallFloat(types_[k].dtype)) continue;
    types_[k].dtype = DType::kFloat32;
    operands_[k] = Cast(operands_[k], DType::kFloat32);
  }
  const auto to = static_cast<DType>(node.attributes.Int(kCastTo));
  if (to != DType::kFloat32) result_cast_ = to;
}

Body::Name Body::Op(absl::string_view op, Names inputs, AttributeList attributes) {
  return Ops(op, std::move(inputs), std::move(attributes), 1)[0];
}

Body::Names Body::Ops(absl::string_view op, Names inputs, AttributeList attributes, int outputs,
                      absl::string_view domain) {
  onnx::NodeProto& node = *function_.add_node();
  node.set_op_type(std::string(op));
  node.set_domain(std::string(domain));
  for (Name& input : inputs) node.add_input(std::move(input));
  for (const auto& [name, value] : attributes) *node.add_attribute() = ToProto(name, value);
  Names results;
  for (int k = 0; k < outputs; ++k) {
    results.push_back(absl::StrCat("v", made_++));
    node.add_output(results.back());
  }
  return results;
}

Body::Name Body::Reduce(absl::string_view op, Name x, absl::Span<const int64_t> axes, bool keep) {
  if (axes.empty()) return x;
  return Op(op, {std::move(x), Ints(axes)}, {{"keepdims", int64_t{keep}}});
}

Body::Name Body::Tensor(TensorType type, std::string bytes) {
  return Op(
      "Constant", {},
      {{"value", TensorLiteral{std::move(type), std::make_shared<const std::string>(std::move(bytes))}}});
}

Body::Name Body::Scalar(DType dtype, double value) {
  Name& name = constants_[absl::StrCat(static_cast<int>(dtype), " ", BytesOf(value))];
  if (!name.empty()) return name;
  switch (dtype) {
    case DType::kFloat64:
      return name = Tensor({dtype, {}}, BytesOf(value));
    case DType::kInt64:
      return name = Tensor({dtype, {}}, BytesOf(static_cast<int64_t>(value)));
    case DType::kFloat32:
      return name = Tensor({dtype, {}}, BytesOf(static_cast<float>(value)));
    default:
      return name = Cast(Scalar(DType::kFloat32, value), dtype);
  }
}

Body::Name Body::Ints(absl::Span<const int64_t> values) {
  Name& name = constants_[absl::StrCat("ints ", absl::StrJoin(values, ","))];
  if (name.empty()) {
    name = Tensor({DType::kInt64, {static_cast<int64_t>(values.size())}},
                  std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)));
  }
  return name;
}

Body::Name Body::Full(DType dtype, absl::Span<const int64_t> shape, double value) {
  return Op("Expand", {Scalar(dtype, value), Ints(shape)});
}

void Body::Result(int k, Name value) {
  if (!node_.output(k)) return;
  if (!sums_.empty()) value = Add(sums_[k], std::move(value));
  if (k == 0 && result_cast_) value = Cast(std::move(value), *result_cast_);
  // A value that comes from outside, or is a result already, needs a name of its own.
  bool taken = std::find(results_.begin(), results_.end(), value) != results_.end();
  for (const std::string& input : function_.input()) taken |= input == value;
  results_[k] = taken ? Op("Identity", {std::move(value)}) : std::move(value);
}

onnx::FunctionProto Body::Finish() {
  while (!results_.empty() && results_.back().empty()) results_.pop_back();
  // An absent result between others keeps its place.
  for (const Name& result : results_)
    function_.add_output(result.empty() ? Scalar(DType::kFloat32, 0) : result);
  return std::move(function_);
}

}  // namespace pipec
