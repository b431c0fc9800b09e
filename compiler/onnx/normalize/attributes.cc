// Attributes that became operands:
//   ReduceMean<axes = [1]>(x)                    ->  ReduceMean(x, {1})              and the other reductions
//   Squeeze<axes = [0]>(x), Unsqueeze            ->  Squeeze(x, {0})
//   Split<split = [3, 1]>(x)                     ->  Split(x, {3, 1})
//   a, b = Split(x)                              ->  a, b = Split<num_outputs = 2>(x)
//   Slice<starts, ends, axes>(x)                 ->  Slice(x, starts, ends, axes)
//   Clip<min = 0>(x)                             ->  Clip(x, 0, largest)
//   Pad<pads, value>(x)                          ->  Pad(x, pads, value)
//   TopK<k = 3>(x)                               ->  TopK(x, {3})
//   DFT<axis = 1>(x, length)                     ->  DFT(x, length, 1)
//   y, mask = Dropout<ratio = 0.1>(x)            ->  y, kept = Dropout(x, 0.1);  mask = Cast(kept)
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/normalize/rules.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// A number becomes a scalar operand of the data's type.
absl::Status ScalarOperand(PendingNode& node, absl::string_view attribute, float value, int index) {
  node.spec.attributes.Erase(attribute);
  Value* scalar = AddFloat(node.graph, NameOf(node, attribute), value);
  ASSIGN_OR_RETURN(Value * cast,
                   AddCast(node, absl::StrCat(attribute, "/Cast"), scalar, node.spec.inputs[0]->type.dtype));
  SetOperand(node, index, cast);
  return absl::OkStatus();
}

}  // namespace

absl::Status OldReduction(PendingNode& node) {
  IntsToOperand(node, "axes", 1);
  return absl::OkStatus();
}

absl::Status OldSqueeze(PendingNode& node) {
  IntsToOperand(node, "axes", 1);
  return absl::OkStatus();
}

absl::Status OldSplit(PendingNode& node) {
  IntsToOperand(node, "split", 1);
  return absl::OkStatus();
}

// Since opset 18 a split into equal parts says how many; before, parts of unequal size had to be given.
absl::Status EqualSplit(PendingNode& node) {
  if (node.spec.inputs.size() > 1 && node.spec.inputs[1]) return absl::OkStatus();
  const TensorType& x = node.spec.inputs[0]->type;
  const int64_t rank = x.shape.size();
  int64_t axis = node.spec.attributes.Int("axis", 0);
  if (axis < 0) axis += rank;
  // An axis that does not exist is refused where the node's types are inferred.
  if (axis >= 0 && axis < rank && x.shape[axis] % node.outputs != 0) {
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of ", ToString(x),
                                                   " is not a multiple of ", node.outputs, " equal parts"));
  }
  node.spec.attributes.Set("num_outputs", static_cast<int64_t>(node.outputs));
  return absl::OkStatus();
}

absl::Status OldSlice(PendingNode& node) {
  IntsToOperand(node, "starts", 1);
  IntsToOperand(node, "ends", 2);
  IntsToOperand(node, "axes", 3);
  return absl::OkStatus();
}

// A bound left out was the largest finite float32, which also caught infinities.
absl::Status OldClip(PendingNode& node) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const Attributes& a = node.spec.attributes;
  const bool unbounded = node.spec.inputs[0]->type.dtype != DType::kFloat32;
  if (a.Has("min") || !unbounded) {
    RETURN_IF_ERROR(ScalarOperand(node, "min", a.Float("min", -kLargest), 1));
  }
  if (a.Has("max") || !unbounded) {
    RETURN_IF_ERROR(ScalarOperand(node, "max", a.Float("max", kLargest), 2));
  }
  return absl::OkStatus();
}

absl::Status OldPad(PendingNode& node) {
  Attributes& a = node.spec.attributes;
  if (a.Has("paddings")) {  // before opset 2
    a.Set("pads", a.Ints("paddings"));
    a.Erase("paddings");
  }
  IntsToOperand(node, "pads", 1);
  return a.Has("value") ? ScalarOperand(node, "value", a.Float("value"), 2) : absl::OkStatus();
}

absl::Status OldTopK(PendingNode& node) {
  SetOperand(node, 1, AddInts(node.graph, NameOf(node, "k"), {node.spec.attributes.Int("k")}));
  node.spec.attributes.Erase("k");
  return absl::OkStatus();
}

// The axis that nobody names was the one after the batch; now it is the last of the signal.
absl::Status OldDft(PendingNode& node) {
  const int64_t axis = node.spec.attributes.Int("axis", 1);
  std::string bytes(sizeof(axis), '\0');
  std::memcpy(bytes.data(), &axis, sizeof(axis));
  SetOperand(node, 2, node.graph.AddConstant(NameOf(node, "axis"), {DType::kInt64, {}}, std::move(bytes)));
  node.spec.attributes.Erase("axis");
  return absl::OkStatus();
}

// The ratio may be of any type, so it stays what it was; before opset 10 the mask had the data's type.
// Whether dropout happens was the runtime's affair from opset 7 on, as it is here without an operand
// training_mode.
absl::Status OldDropout(PendingNode& node) {
  Attributes& a = node.spec.attributes;
  const bool is_test = a.Int("is_test", 0) != 0;  // before opset 7
  a.Erase("is_test");
  if (is_test && node.outputs < 2) {
    node.results = {node.spec.inputs[0]};
    return absl::OkStatus();
  }
  if (a.Has("ratio")) {
    SetOperand(node, 1, AddFloat(node.graph, NameOf(node, "ratio"), a.Float("ratio")));
    a.Erase("ratio");
  }
  if (node.opset >= 10 || node.outputs < 2) return absl::OkStatus();
  const DType dtype = node.spec.inputs[0]->type.dtype;
  ASSIGN_OR_RETURN(Node * dropout, EmitNode(node.graph, node.spec, 2));
  ASSIGN_OR_RETURN(Value * mask, AddCast(node, "mask", dropout->output(1), dtype));
  node.results = {dropout->output(0), mask};
  return absl::OkStatus();
}

}  // namespace pipec
