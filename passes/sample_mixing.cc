#include "passes/sample_mixing.h"

#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "passes/evaluate.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

enum class Content { kFixed, kSamples, kReduced };  // no data, values of samples, a mean or sum over samples

bool IsOneOf(const Node& node, std::initializer_list<absl::string_view> ops) {
  return node.domain().empty() && std::find(ops.begin(), ops.end(), node.op()) != ops.end();
}

absl::Status Refuse(const Node& node, absl::string_view how) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", node.name(), " (", node.op(), ") ", how,
                   ", so the loss of a batch would depend on how it is cut into microbatches: only means and "
                   "sums over samples, and what is ",
                   "linear in them, can be; --microbatches=1 with one replica keeps the batch whole"));
}

// Whether a reduction goes over the batch axis of its operand.
absl::StatusOr<bool> ReducesSamples(const Node& node) {
  const Value& x = *node.input(0);
  if (x.batch_axis < 0) return false;
  std::vector<int64_t> axes;
  if (const Value* operand = node.input(1)) {
    if (operand->kind() != ValueKind::kConstant) return false;
    ASSIGN_OR_RETURN(const std::string bytes, ReadData(*operand));
    axes.resize(bytes.size() / sizeof(int64_t));
    std::memcpy(axes.data(), bytes.data(), bytes.size());
  }
  if (axes.empty()) return node.attributes.Int("noop_with_empty_axes") == 0;
  const int64_t rank = x.type.shape.size();
  return std::any_of(axes.begin(), axes.end(),
                     [&](int64_t axis) { return (axis + rank) % rank == x.batch_axis; });
}

bool NormalizesSamples(const Node& node) {
  const Value* x = node.input(0);
  if (!IsOneOf(node, {"Softmax", "LogSoftmax", "LayerNormalization"}) || x->batch_axis < 0) return false;
  const int64_t rank = x->type.shape.size();
  const int64_t axis = (node.attributes.Int("axis", -1) + rank) % rank;
  return node.Is("LayerNormalization") ? axis <= x->batch_axis : axis == x->batch_axis;
}

bool IsSumOfLosses(const Node& node) {
  return node.domain() == kPipecDomain && node.output(0)->type.shape.empty() &&
         (node.op() == "SoftmaxCrossEntropy" || node.op() == "NegativeLogLikelihood" ||
          node.op() == "MeanSquaredError" || node.op() == "BinaryCrossEntropyWithLogits");
}

// Whether the result is linear in those operands that are reduced, the others being fixed.
bool IsLinear(const Node& node, const std::vector<Content>& inputs) {
  const auto reduced = std::count(inputs.begin(), inputs.end(), Content::kReduced);
  if (std::count(inputs.begin(), inputs.end(), Content::kSamples) > 0) return false;
  if (IsOneOf(node, {"Add", "Sub", "Sum", "Concat"})) return true;
  if (IsOneOf(node, {"Mul", "MatMul"})) return reduced == 1;
  if (node.Is("Where")) return inputs[0] == Content::kFixed;
  if (node.Is("Div")) {
    // The mean that import spells as sum / weight.
    const Node* losses = node.input(0)->producer();
    const bool is_mean = losses && IsSumOfLosses(*losses) && node.input(1) == losses->output(1);
    return is_mean || (inputs[0] == Content::kReduced && inputs[1] == Content::kFixed);
  }
  return inputs[0] == Content::kReduced && reduced == 1 &&
         IsOneOf(node, {"Identity", "Neg", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose",
                        "Expand", "Slice", "Split", "Gather", "ReduceSum", "ReduceMean"});
}

absl::StatusOr<Content> ResultOf(const Node& node, const std::vector<Content>& inputs) {
  const auto any = [&](Content content) {
    return std::find(inputs.begin(), inputs.end(), content) != inputs.end();
  };
  // What is no float carries no gradient: it chooses, and what it chooses from counts.
  if (!node.output(0) || !IsFloat(node.output(0)->type.dtype)) {
    return any(Content::kSamples) || any(Content::kReduced) ? Content::kSamples : Content::kFixed;
  }
  if (IsSumOfLosses(node) && !any(Content::kReduced)) return Content::kReduced;
  if (node.domain().empty() && absl::StartsWith(node.op(), "Reduce")) {
    ASSIGN_OR_RETURN(const bool over_samples, ReducesSamples(node));
    if (over_samples && IsOneOf(node, {"ReduceSum", "ReduceMean"})) return Content::kReduced;
    if (over_samples) return Refuse(node, "reduces over the samples of a microbatch");
  }
  if (NormalizesSamples(node)) return Refuse(node, "normalises over the samples of a microbatch");
  if (any(Content::kReduced)) {
    if (IsLinear(node, inputs)) return Content::kReduced;
    return Refuse(node, "is not linear in a mean or sum over the samples of a microbatch");
  }
  return any(Content::kSamples) ? Content::kSamples : Content::kFixed;
}

}  // namespace

absl::Status CheckSampleMixing(const Graph& graph) {
  absl::flat_hash_map<const Value*, Content> contents;
  for (const Node* node = graph.first_node(); node; node = node->next()) {
    if (node->Is("Accumulate", kPipecDomain) || node->Is("CountCorrect", kPipecDomain)) continue;
    std::vector<Content> inputs;
    for (const Value* input : node->inputs()) {
      auto it = contents.find(input);
      if (it != contents.end()) {
        inputs.push_back(it->second);
      } else {
        inputs.push_back(input && input->kind() == ValueKind::kInput ? Content::kSamples : Content::kFixed);
      }
    }
    ASSIGN_OR_RETURN(const Content result, ResultOf(*node, inputs));
    for (const Value* output : node->outputs()) {
      if (output) contents[output] = result;
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec
