// Forms with other attributes or another name, most of them gone with opset 7.
//   Add<broadcast = 1, axis = 1>(a [2,3,4], b [3])  ->  Add(a, Reshape(b, {3,1}))
//   PRelu(x [N,C,D], slope [C])                     ->  PRelu(x, Reshape(slope, {C,1}))
//   Gemm<broadcast = 1>(a, b, c)                    ->  Gemm(a, b, c)
//   Cast<to = "FLOAT">(x)                           ->  Cast<to = 1>(x)
//   Concat(x, y)                                    ->  Concat<axis = 1>(x, y)
//   Reshape<shape = [2,3]>(x)                       ->  Reshape(x, {2,3})
//   LSTM<output_sequence = 1>(...)                  ->  LSTM(...)
//   Scatter(data, indices, updates)                 ->  ScatterElements(data, indices, updates)
#include "absl/strings/str_cat.h"
#include "compiler/onnx/normalize/rules.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/status.h"

namespace pipec {

// The second operand was broadcast only if asked, its axes aligned at `axis` (default: the last).
absl::Status OldBroadcast(PendingNode& node) {
  const TensorType& a = node.spec.inputs[0]->type;
  const TensorType& b = node.spec.inputs[1]->type;
  if (node.spec.attributes.Int("broadcast", 0) != 0 && node.spec.attributes.Has("axis")) {
    int64_t axis = node.spec.attributes.Int("axis");
    if (axis < 0) axis += a.shape.size();
    const int64_t trailing =
        static_cast<int64_t>(a.shape.size()) - axis - static_cast<int64_t>(b.shape.size());
    if (axis < 0 || trailing < 0) {
      return absl::InvalidArgumentError(absl::StrCat("broadcast of ", ToString(b), " at axis ",
                                                     node.spec.attributes.Int("axis"), " of ", ToString(a)));
    }
    if (trailing > 0) {
      Shape shape = b.shape;
      shape.insert(shape.end(), trailing, 1);
      ASSIGN_OR_RETURN(node.spec.inputs[1], AddReshape(node, "broadcast", node.spec.inputs[1], shape));
    }
  }
  node.spec.attributes.Erase("broadcast");
  node.spec.attributes.Erase("axis");
  return absl::OkStatus();
}

// A slope for each channel lay along the channels' axis.
absl::Status OldPRelu(PendingNode& node) {
  const size_t rank = node.spec.inputs[0]->type.shape.size();
  Value* const slope = node.spec.inputs[1];
  if (slope->type.shape.size() != 1 || slope->type.shape[0] == 1 || rank < 3) return absl::OkStatus();
  Shape shape = slope->type.shape;
  shape.insert(shape.end(), rank - 2, 1);
  ASSIGN_OR_RETURN(node.spec.inputs[1], AddReshape(node, "slope", slope, shape));
  return absl::OkStatus();
}

absl::Status OldGemm(PendingNode& node) {
  node.spec.attributes.Erase("broadcast");
  return absl::OkStatus();
}

absl::Status OldCast(PendingNode& node) {
  onnx::TensorProto::DataType type;
  if (!onnx::TensorProto::DataType_Parse(node.spec.attributes.String("to"), &type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cast to unknown type '", node.spec.attributes.String("to"), "'"));
  }
  node.spec.attributes.Set("to", static_cast<int64_t>(type));
  return absl::OkStatus();
}

absl::Status OldConcat(PendingNode& node) {
  node.spec.attributes.Set("axis", node.spec.attributes.Int("axis", 1));
  return absl::OkStatus();
}

absl::Status OldReshape(PendingNode& node) {
  IntsToOperand(node, "shape", 1);
  return absl::OkStatus();
}

absl::Status OldScatter(PendingNode& node) {
  node.spec.op = "ScatterElements";
  return absl::OkStatus();
}

// The attribute said whether the sequence of hidden states is asked for; now that shows.
absl::Status OldRecurrent(PendingNode& node) {
  node.spec.attributes.Erase("output_sequence");
  return absl::OkStatus();
}

}  // namespace pipec
