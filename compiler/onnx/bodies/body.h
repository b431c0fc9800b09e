// Writes the ONNX function that says in plain ONNX ops what a node of a helper op computes. The types of the
// node's operands and its attributes are known, so they stand in the function as constants.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/sums.h"
#include "onnx/onnx_pb.h"

namespace pipec {

class Body {
 public:
  using Name = std::string;  // of a value within the function
  using Names = std::vector<Name>;
  using AttributeList = std::vector<std::pair<std::string, Attribute>>;

  // `operands`: the names of the node's operands, separated by spaces; the last stands for any number with
  // numbers behind it ("x*": x0, x1, ...). `scalars`: operands behind those, the run-time scalars.
  Body(const Node& node, absl::string_view operands, absl::string_view scalars);

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  bool has(int operand) const { return operand < OwnOperands(node_) && node_.input(operand) != nullptr; }
  // Behind the casts that the node has itself (compiler/ops/casts.h), as `in` is.
  const TensorType& type(int operand) const { return types_[operand]; }
  const Shape& shape(int operand) const { return type(operand).shape; }
  int rank(int operand) const { return static_cast<int>(shape(operand).size()); }
  // "" if the operand is absent.
  Name in(int operand) const { return has(operand) ? operands_[operand] : ""; }

  // A new node of ai.onnx (`domain` "") in its newest form.
  Name Op(absl::string_view op, Names inputs, AttributeList attributes = {});
  Names Ops(absl::string_view op, Names inputs, AttributeList attributes, int outputs,
            absl::string_view domain = "");

  Name Add(Name a, Name b) { return Op("Add", {std::move(a), std::move(b)}); }
  Name Sub(Name a, Name b) { return Op("Sub", {std::move(a), std::move(b)}); }
  Name Mul(Name a, Name b) { return Op("Mul", {std::move(a), std::move(b)}); }
  Name Div(Name a, Name b) { return Op("Div", {std::move(a), std::move(b)}); }
  Name Where(Name condition, Name a, Name b) {
    return Op("Where", {std::move(condition), std::move(a), std::move(b)});
  }
  Name Cast(Name x, DType to) { return Op("Cast", {std::move(x)}, {{"to", static_cast<int64_t>(to)}}); }
  Name Reshape(Name x, absl::Span<const int64_t> shape) { return Op("Reshape", {std::move(x), Ints(shape)}); }
  Name Transpose(Name x, std::vector<int64_t> perm) {
    return Op("Transpose", {std::move(x)}, {{"perm", std::move(perm)}});
  }
  // Over these axes, which stay with size 1 if `keep`. No axes: x.
  Name Sum(Name x, absl::Span<const int64_t> axes, bool keep) {
    return Reduce("ReduceSum", std::move(x), axes, keep);
  }
  Name Mean(Name x, absl::Span<const int64_t> axes, bool keep) {
    return Reduce("ReduceMean", std::move(x), axes, keep);
  }

  // Constants. A scalar has shape []; it is made as float32 and cast where `dtype` is a 16-bit float.
  Name Scalar(DType dtype, double value);
  Name Ints(absl::Span<const int64_t> values);
  // Of shape `shape`, all elements equal.
  Name Full(DType dtype, absl::Span<const int64_t> shape, double value);
  Name Tensor(TensorType type, std::string bytes);

  // Result k of the node, less the sum that it is added to (compiler/ir/sums.h). Each must be said, unless nobody
  // asked for it.
  void Result(int k, Name value);

  // The function, without a name.
  onnx::FunctionProto Finish();

 private:
  Name Reduce(absl::string_view op, Name x, absl::Span<const int64_t> axes, bool keep);

  const Node& node_;
  Names operands_, sums_, results_;
  std::vector<TensorType> types_;
  std::optional<DType> result_cast_;  // of result 0
  std::map<std::string, Name> constants_;
  onnx::FunctionProto function_;
  int made_ = 0;
};

}  // namespace pipec
