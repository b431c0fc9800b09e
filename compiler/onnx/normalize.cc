#include "compiler/onnx/normalize.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/emit_node.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status NoCounterpart(const PendingNode& node, absl::string_view what) {
  return absl::UnimplementedError(
      absl::StrCat(what, " of opset ", node.opset, " is not supported; export with a newer opset"));
}

std::string NameOf(const PendingNode& node, absl::string_view part) {
  return absl::StrCat(node.spec.name.empty() ? node.spec.op : node.spec.name, "/", part);
}

void SetOperand(PendingNode& node, int index, Value* value) {
  if (node.spec.inputs.size() <= index) node.spec.inputs.resize(index + 1);
  node.spec.inputs[index] = value;
}

// An attribute of integers becomes operand `index`; absent stays absent.
void IntsToOperand(PendingNode& node, absl::string_view attribute, int index) {
  if (!node.spec.attributes.Has(attribute)) return;
  SetOperand(node, index, AddInts(node.graph, NameOf(node, attribute), node.spec.attributes.Ints(attribute)));
  node.spec.attributes.Erase(attribute);
}

// A number given as attribute becomes a scalar operand of the data's type.
absl::Status FloatToOperand(PendingNode& node, absl::string_view attribute, int index) {
  if (!node.spec.attributes.Has(attribute)) return absl::OkStatus();
  Value* scalar = AddFloat(node.graph, NameOf(node, attribute), node.spec.attributes.Float(attribute));
  node.spec.attributes.Erase(attribute);
  const DType wanted = node.spec.inputs[0]->type.dtype;
  if (wanted != DType::kFloat32) {
    NodeSpec cast{.op = "Cast", .name = NameOf(node, absl::StrCat(attribute, "/Cast")), .inputs = {scalar}};
    cast.attributes.Set("to", static_cast<int64_t>(wanted));
    ASSIGN_OR_RETURN(Node * added, EmitNode(node.graph, std::move(cast)));
    scalar = added->output(0);
  }
  SetOperand(node, index, scalar);
  return absl::OkStatus();
}

absl::StatusOr<Value*> Reshape(PendingNode& node, Value* value, absl::string_view part,
                               absl::Span<const int64_t> shape) {
  Value* target = AddInts(node.graph, NameOf(node, absl::StrCat(part, "/shape")), shape);
  ASSIGN_OR_RETURN(
      Node * added,
      EmitNode(node.graph, {.op = "Reshape", .name = NameOf(node, part), .inputs = {value, target}}));
  return added->output(0);
}

absl::Status AxesToOperand(PendingNode& node) {
  IntsToOperand(node, "axes", 1);
  return absl::OkStatus();
}

absl::Status OldSplit(PendingNode& node) {
  IntsToOperand(node, "split", 1);
  return absl::OkStatus();
}

// Since opset 18 a split into equal parts says how many.
absl::Status EqualSplit(PendingNode& node) {
  if (node.spec.inputs.size() < 2 || !node.spec.inputs[1]) {
    node.spec.attributes.Set("num_outputs", static_cast<int64_t>(node.outputs));
  }
  return absl::OkStatus();
}

absl::Status OldSlice(PendingNode& node) {
  IntsToOperand(node, "starts", 1);
  IntsToOperand(node, "ends", 2);
  IntsToOperand(node, "axes", 3);
  return absl::OkStatus();
}

absl::Status OldClip(PendingNode& node) {
  RETURN_IF_ERROR(FloatToOperand(node, "min", 1));
  return FloatToOperand(node, "max", 2);
}

absl::Status OldDropout(PendingNode& node) {
  const bool is_test = node.spec.attributes.Int("is_test", 0) != 0;
  node.spec.attributes.Erase("is_test");
  if (!is_test || node.outputs > 1) return FloatToOperand(node, "ratio", 1);
  node.results = {node.spec.inputs[0]};
  return absl::OkStatus();
}

absl::Status OldPad(PendingNode& node) {
  if (node.spec.attributes.Has("paddings")) {
    node.spec.attributes.Set("pads", node.spec.attributes.Ints("paddings"));
    node.spec.attributes.Erase("paddings");
  }
  IntsToOperand(node, "pads", 1);
  return FloatToOperand(node, "value", 2);
}

// Before opset 13 the axes from `axis` on were one: flatten, normalise over the last axis, restore.
absl::Status OldSoftmax(PendingNode& node) {
  Value* x = node.spec.inputs[0];
  const int64_t rank = x->type.shape.size();
  int64_t axis = node.spec.attributes.Int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= std::max<int64_t>(rank, 1)) {
    return absl::InvalidArgumentError(absl::StrCat("axis ", node.spec.attributes.Int("axis", 1), " of ",
                                                   ToString(x->type), " does not exist"));
  }
  node.spec.attributes.Set("axis", int64_t{-1});
  const bool one_axis =
      std::all_of(x->type.shape.begin() + axis + 1, x->type.shape.end(), [](int64_t d) { return d == 1; });
  if (one_axis) {
    node.spec.attributes.Set("axis", axis);
    return absl::OkStatus();
  }
  const absl::Span<const int64_t> shape = x->type.shape;
  ASSIGN_OR_RETURN(
      node.spec.inputs[0],
      Reshape(node, x, "flatten", {NumElements(shape.subspan(0, axis)), NumElements(shape.subspan(axis))}));
  ASSIGN_OR_RETURN(Node * added, EmitNode(node.graph, std::move(node.spec)));
  node.spec = {.op = added->op(), .name = added->name()};
  ASSIGN_OR_RETURN(Value * result, Reshape(node, added->output(0), "restore", shape));
  node.results = {result};
  return absl::OkStatus();
}

absl::Status OldTopK(PendingNode& node) {
  SetOperand(node, 1, AddInts(node.graph, NameOf(node, "k"), {node.spec.attributes.Int("k")}));
  node.spec.attributes.Erase("k");
  return absl::OkStatus();
}

absl::Status OldDft(PendingNode& node) {
  const int64_t axis = node.spec.attributes.Int("axis", 1);
  std::string bytes(reinterpret_cast<const char*>(&axis), sizeof(axis));
  SetOperand(node, 2, node.graph.AddConstant(NameOf(node, "axis"), {DType::kInt64, {}}, std::move(bytes)));
  node.spec.attributes.Erase("axis");
  return absl::OkStatus();
}

// Upsample, and Resize of opset 10, are Resize with the coordinates of that time.
absl::Status OldResize(PendingNode& node) {
  if (node.spec.attributes.Has("scales")) {
    const std::vector<float> scales = node.spec.attributes.Floats("scales");
    std::string bytes(reinterpret_cast<const char*>(scales.data()), scales.size() * sizeof(float));
    SetOperand(
        node, 1,
        node.graph.AddConstant(NameOf(node, "scales"),
                               {DType::kFloat32, {static_cast<int64_t>(scales.size())}}, std::move(bytes)));
    node.spec.attributes.Erase("scales");
  }
  if (node.spec.inputs.size() < 2) return NoCounterpart(node, absl::StrCat(node.spec.op, " without scales"));
  node.spec.op = "Resize";
  node.spec.inputs = {node.spec.inputs[0], nullptr, node.spec.inputs[1]};
  node.spec.attributes.Set("coordinate_transformation_mode", std::string("asymmetric"));
  node.spec.attributes.Set("nearest_mode", std::string("floor"));
  return absl::OkStatus();
}

absl::Status OldScatter(PendingNode& node) {
  node.spec.op = "ScatterElements";
  return absl::OkStatus();
}

// Before opset 14 a second result meant training.
absl::Status OldBatchNormalization(PendingNode& node) {
  if (node.spec.attributes.Int("spatial", 1) == 0)
    return NoCounterpart(node, "BatchNormalization with spatial=0");
  if (node.outputs > 3) return NoCounterpart(node, "BatchNormalization with saved statistics");
  if (node.outputs > 1) node.spec.attributes.Set("training_mode", int64_t{1});
  node.spec.attributes.Erase("spatial");
  node.spec.attributes.Erase("is_test");
  return absl::OkStatus();
}

// Before opset 21 scale and bias were one per group.
absl::Status OldGroupNormalization(PendingNode& node) { return NoCounterpart(node, "GroupNormalization"); }

absl::Status OldGridSample(PendingNode& node) {
  const std::string mode = node.spec.attributes.String("mode", "bilinear");
  node.spec.attributes.Set("mode", mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode);
  return absl::OkStatus();
}

// Before opset 6 `to` was the type's name in capitals.
absl::Status OldCast(PendingNode& node) {
  onnx::TensorProto::DataType type;
  if (!onnx::TensorProto::DataType_Parse(node.spec.attributes.String("to"), &type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cast to unknown type '", node.spec.attributes.String("to"), "'"));
  }
  node.spec.attributes.Set("to", static_cast<int64_t>(type));
  return absl::OkStatus();
}

absl::Status OldReshape(PendingNode& node) {
  IntsToOperand(node, "shape", 1);
  return absl::OkStatus();
}

absl::Status OldGemm(PendingNode& node) {
  node.spec.attributes.Erase("broadcast");
  return absl::OkStatus();
}

// Before opset 7 the second operand was broadcast only if asked, its axes aligned at `axis` (default: the
// last).
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
    Shape shape = b.shape;
    shape.insert(shape.end(), trailing, 1);
    if (trailing > 0) {
      ASSIGN_OR_RETURN(node.spec.inputs[1], Reshape(node, node.spec.inputs[1], "broadcast", shape));
    }
  }
  node.spec.attributes.Erase("broadcast");
  node.spec.attributes.Erase("axis");
  return absl::OkStatus();
}

struct Rule {
  absl::string_view op;
  int until;  // the opset that brought the newer form
  absl::Status (*apply)(PendingNode& node);
};

// By rising version, where an op has several.
constexpr Rule kRules[] = {
    {"Reshape", 5, OldReshape},
    {"Cast", 6, OldCast},
    {"Gemm", 7, OldGemm},
    {"Add", 7, OldBroadcast},
    {"Sub", 7, OldBroadcast},
    {"Mul", 7, OldBroadcast},
    {"Div", 7, OldBroadcast},
    {"Pow", 7, OldBroadcast},
    {"And", 7, OldBroadcast},
    {"Or", 7, OldBroadcast},
    {"Xor", 7, OldBroadcast},
    {"Equal", 7, OldBroadcast},
    {"Greater", 7, OldBroadcast},
    {"Less", 7, OldBroadcast},
    {"Slice", 10, OldSlice},
    {"TopK", 10, OldTopK},
    {"Upsample", 10, OldResize},
    {"Resize", 11, OldResize},
    {"Scatter", 11, OldScatter},
    {"Clip", 11, OldClip},
    {"Pad", 11, OldPad},
    {"Dropout", 12, OldDropout},
    {"Softmax", 13, OldSoftmax},
    {"LogSoftmax", 13, OldSoftmax},
    {"Hardmax", 13, OldSoftmax},
    {"Squeeze", 13, AxesToOperand},
    {"Unsqueeze", 13, AxesToOperand},
    {"ReduceSum", 13, AxesToOperand},
    {"Split", 13, OldSplit},
    {"BatchNormalization", 14, OldBatchNormalization},
    {"ReduceMean", 18, AxesToOperand},
    {"ReduceMax", 18, AxesToOperand},
    {"ReduceMin", 18, AxesToOperand},
    {"ReduceProd", 18, AxesToOperand},
    {"ReduceL1", 18, AxesToOperand},
    {"ReduceL2", 18, AxesToOperand},
    {"ReduceLogSum", 18, AxesToOperand},
    {"ReduceLogSumExp", 18, AxesToOperand},
    {"ReduceSumSquare", 18, AxesToOperand},
    {"Split", 18, EqualSplit},
    {"DFT", 20, OldDft},
    {"GridSample", 20, OldGridSample},
    {"GroupNormalization", 21, OldGroupNormalization},
};

const auto& RulesByOp() {
  static const auto* const kByOp = [] {
    auto* rules = new absl::flat_hash_map<absl::string_view, std::vector<const Rule*>>();
    for (const Rule& rule : kRules) (*rules)[rule.op].push_back(&rule);
    return rules;
  }();
  return *kByOp;
}

}  // namespace

absl::Status NormalizeOpset(PendingNode& node) {
  if (node.opset < 6) node.spec.attributes.Erase("consumed_inputs");
  auto it = RulesByOp().find(node.spec.op);
  if (it == RulesByOp().end()) return absl::OkStatus();
  for (const Rule* rule : it->second) {
    if (node.opset < rule->until) RETURN_IF_ERROR(rule->apply(node));
  }
  return absl::OkStatus();
}

}  // namespace pipec
