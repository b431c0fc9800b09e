// BatchNormalization and GroupNormalization.
//
// BatchNormalization before opset 14: more results than one meant training.
//   y, m, v = BatchNormalization(x, s, b, m0, v0)     ->  y, m, v = BatchNormalization<training_mode =
//   1>(...) y, m, v, sm, sv = BatchNormalization(...)         ->  the same, and sm, sv = mean and variance of
//   x's channels
// and, before opset 9, spatial = 0: statistics of their own for every place of a sample.
//   y = BatchNormalization<spatial = 0>(x [N,C,D], s [C,D], ...)  ->  x and s... flattened to [N,C*D] and
//   [C*D]
//
// GroupNormalization before opset 21: scale and bias were one per group.
//   y = GroupNormalization(x [N,C,...], s [G], b [G])  ->  each value of s and b repeated C/G times
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/normalize/rules.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Mean and variance over all axes but the channels', as float [C].
absl::StatusOr<std::vector<Value*>> ChannelStatistics(PendingNode& node, Value* x) {
  std::vector<int64_t> axes(x->type.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (axes.size() > 1) axes.erase(axes.begin() + 1);
  const auto mean_of = [&](const char* part, Value* value, int64_t keepdims) {
    NodeSpec spec{.op = "ReduceMean", .name = part};
    spec.inputs = {value, AddInts(node.graph, NameOf(node, absl::StrCat(part, "/axes")), axes)};
    spec.attributes.Set("keepdims", keepdims);
    return AddBefore(node, std::move(spec));
  };
  ASSIGN_OR_RETURN(Value * mean, mean_of("saved_mean", x, 0));
  ASSIGN_OR_RETURN(Value * kept, mean_of("saved_mean/kept", x, 1));
  ASSIGN_OR_RETURN(Value * difference,
                   AddBefore(node, {.op = "Sub", .name = "difference", .inputs = {x, kept}}));
  ASSIGN_OR_RETURN(Value * square,
                   AddBefore(node, {.op = "Mul", .name = "square", .inputs = {difference, difference}}));
  ASSIGN_OR_RETURN(Value * variance, mean_of("saved_var", square, 0));
  return std::vector<Value*>{mean, variance};
}

// One value a group [G] -> one value a channel [C].
absl::StatusOr<Value*> RepeatForChannels(PendingNode& node, const std::string& part, Value* value,
                                         int64_t channels) {
  const int64_t groups = value->type.elements();
  ASSIGN_OR_RETURN(Value * column, AddReshape(node, part + "/column", value, {groups, 1}));
  Value* shape = AddInts(node.graph, NameOf(node, part + "/shape"), {groups, channels / groups});
  ASSIGN_OR_RETURN(Value * wide,
                   AddBefore(node, {.op = "Expand", .name = part + "/wide", .inputs = {column, shape}}));
  return AddReshape(node, part, wide, {channels});
}

}  // namespace

absl::Status OldBatchNormalization(PendingNode& node) {
  Attributes& a = node.spec.attributes;
  Value* const x = node.spec.inputs[0];
  const Shape shape = x->type.shape;
  const bool spatial = a.Int("spatial", 1) != 0 || shape.size() < 3;
  a.Erase("spatial");
  a.Erase("is_test");  // before opset 7
  if (node.outputs > 1) a.Set("training_mode", int64_t{1});
  if (spatial && node.outputs <= 3) return absl::OkStatus();

  Shape per_place(shape.begin() + std::min<size_t>(1, shape.size()), shape.end());
  if (!spatial) {
    const int64_t places = NumElements(per_place);
    ASSIGN_OR_RETURN(node.spec.inputs[0], AddReshape(node, "flatten", x, {shape[0], places}));
    for (int i = 1; i < node.spec.inputs.size(); ++i) {
      ASSIGN_OR_RETURN(node.spec.inputs[i],
                       AddReshape(node, absl::StrCat("flatten/", i), node.spec.inputs[i], {places}));
    }
  }
  Value* const normalized = node.spec.inputs[0];
  ASSIGN_OR_RETURN(Node * added, EmitNode(node.graph, node.spec, std::min(node.outputs, 3)));
  node.results.assign(added->outputs().begin(), added->outputs().end());
  if (node.outputs > 3) {
    ASSIGN_OR_RETURN(const std::vector<Value*> saved, ChannelStatistics(node, normalized));
    node.results.insert(node.results.end(), saved.begin(), saved.end());
  }
  if (spatial) return absl::OkStatus();
  for (int k = 0; k < node.results.size(); ++k) {
    ASSIGN_OR_RETURN(node.results[k], AddReshape(node, absl::StrCat("restore/", k), node.results[k],
                                                 k == 0 ? shape : per_place));
  }
  return absl::OkStatus();
}

absl::Status OldGroupNormalization(PendingNode& node) {
  const TensorType& x = node.spec.inputs[0]->type;
  const int64_t groups = node.spec.attributes.Int("num_groups");
  const int64_t channels = x.shape.size() < 2 ? 0 : x.shape[1];
  if (groups < 1 || channels < 1 || channels % groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the channels of ", ToString(x), " are not a multiple of ", groups, " groups"));
  }
  constexpr const char* kParts[] = {"", "scale", "bias"};
  for (int i : {1, 2}) {
    Value*& operand = node.spec.inputs[i];
    if (operand->type.shape != Shape{groups}) {
      return absl::InvalidArgumentError(absl::StrCat(kParts[i], " is ", ToString(operand->type),
                                                     ", wanted one value a group, [", groups, "]"));
    }
    ASSIGN_OR_RETURN(operand, RepeatForChannels(node, kParts[i], operand, channels));
  }
  return absl::OkStatus();
}

}  // namespace pipec
