#include "passes/sample_mixing.h"

#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/ops/mixing.h"
#include "passes/evaluate.h"
#include "passes/loss_terms.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// No data, values of samples, a mean or a sum over samples.
enum class Content { kFixed, kSamples, kMean, kSum };

bool IsReduced(Content content) { return content == Content::kMean || content == Content::kSum; }

bool IsOneOf(const Node& node, std::initializer_list<absl::string_view> ops) {
  return node.domain().empty() && std::find(ops.begin(), ops.end(), node.op()) != ops.end();
}

absl::Status Refuse(const Node& node, absl::string_view how) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", node.name(), " (", node.op(), ") ", how,
                   ", so the loss of a batch would depend on how it is cut into microbatches: only means and "
                   "sums over samples, and what is linear in them, can be; --microbatches=1 with one replica "
                   "keeps the batch whole"));
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

// "along axis 0 of 'x'".
std::string Along(const Node& node, int operand) {
  const Value& x = *node.input(operand);
  return absl::StrCat("along axis ", x.batch_axis, " of '", x.name(), "'");
}

bool IsSumOfLosses(const Node& node) {
  return node.domain() == kPipecDomain && node.output(0)->type.shape.empty() &&
         (node.op() == "SoftmaxCrossEntropy" || node.op() == "NegativeLogLikelihood" ||
          node.op() == "MeanSquaredError" || node.op() == "BinaryCrossEntropyWithLogits");
}

// Whether `divisor` is a constant that counts what `sum` was added up from: the samples, or the elements.
absl::StatusOr<bool> CountsSamples(const Value& divisor, const Value& sum, const Module& module) {
  if (divisor.kind() != ValueKind::kConstant || divisor.type.elements() != 1) return false;
  // Where the batch is a symbol the number comes from a shape. Where it is written only the number itself can
  // tell.
  if (!divisor.counts_samples && !module.batch_is_written) return false;
  const int64_t samples = module.microbatch_size;
  ASSIGN_OR_RETURN(const std::string bytes, ReadData(divisor));
  double count = 0;
  if (divisor.type.dtype == DType::kFloat32) {
    float narrow;
    std::memcpy(&narrow, bytes.data(), sizeof(narrow));
    count = narrow;
  } else if (divisor.type.dtype == DType::kFloat64) {
    std::memcpy(&count, bytes.data(), sizeof(count));
  }
  const Node* node = sum.producer();
  while (node && IsOneOf(*node, {"Identity", "Neg", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})) {
    node = node->input(0)->producer();
  }
  const int64_t summed = node && node->Is("ReduceSum") && node->output(0)->type.elements() > 0
                             ? node->input(0)->type.elements() / node->output(0)->type.elements()
                             : samples;
  return count == static_cast<double>(samples) || count == static_cast<double>(summed);
}

// What a node makes of operands some of which are reduced.
absl::StatusOr<Content> Combine(const Node& node, const std::vector<Content>& inputs, const Module& module) {
  const auto count = [&](Content content) { return std::count(inputs.begin(), inputs.end(), content); };
  const auto means = count(Content::kMean), sums = count(Content::kSum);
  const absl::Status not_linear =
      Refuse(node, "is not linear in a mean or sum over the samples of a microbatch");
  if (count(Content::kSamples) > 0) return not_linear;
  const Content content = sums > 0 ? Content::kSum : Content::kMean;
  const bool chooses = node.Is("Where") && inputs[0] == Content::kFixed;
  if (chooses || IsOneOf(node, {"Add", "Sub", "Sum", "Concat"})) {
    const auto fixed = count(Content::kFixed) - (chooses ? 1 : 0);
    if (sums > 0 && means + fixed > 0)
      return Refuse(node, "puts a sum over samples together with what is none");
    return content;
  }
  if (IsOneOf(node, {"Mul", "MatMul"}) && means + sums == 1) return content;
  if (node.Is("Div")) {
    // The mean that import spells as sum / weight.
    const Node* losses = node.input(0)->producer();
    if (losses && IsSumOfLosses(*losses) && node.input(1) == losses->output(1)) {
      if (!ClassLossOf(node.input(0)) || !WeightDependsOnLabels(*losses)) return Content::kMean;
      return Refuse(
          node, "divides by a weight that the labels of the whole batch decide, and other losses with it");
    }
    if (!IsReduced(inputs[0]) || inputs[1] != Content::kFixed) return not_linear;
    if (content == Content::kMean) return content;
    ASSIGN_OR_RETURN(const bool is_mean, CountsSamples(*node.input(1), *node.input(0), module));
    return is_mean ? Content::kMean : Content::kSum;
  }
  if (IsReduced(inputs[0]) && means + sums == 1 &&
      IsOneOf(node, {"Identity", "Neg", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose",
                     "Expand", "Slice", "Split", "Gather", "ReduceSum", "ReduceMean"})) {
    return content;
  }
  return not_linear;
}

absl::StatusOr<Content> ResultOf(const Node& node, const std::vector<Content>& inputs, const Module& module) {
  const bool any_samples = std::count(inputs.begin(), inputs.end(), Content::kSamples) > 0;
  const bool any_reduced = std::any_of(inputs.begin(), inputs.end(), IsReduced);
  // What is no float carries no gradient: it chooses, and what it chooses from counts.
  if (!node.output(0) || !IsFloat(node.output(0)->type.dtype)) {
    return any_samples || any_reduced ? Content::kSamples : Content::kFixed;
  }
  if (IsSumOfLosses(node) && !any_reduced) return Content::kSum;
  if (node.domain().empty() && absl::StartsWith(node.op(), "Reduce")) {
    ASSIGN_OR_RETURN(const bool over_samples, ReducesSamples(node));
    if (over_samples && node.Is("ReduceSum")) return Content::kSum;
    if (over_samples && node.Is("ReduceMean")) return Content::kMean;
    if (over_samples) {
      return Refuse(node, absl::StrCat("reduces over the samples of a microbatch, ", Along(node, 0)));
    }
  } else if (const int mixed = MixedOperand(node); mixed >= 0 && !node.Is("BatchNormalization")) {
    return Refuse(node, absl::StrCat("mixes the samples of a microbatch, ", Along(node, mixed)));
  }
  if (any_reduced) return Combine(node, inputs, module);
  return any_samples ? Content::kSamples : Content::kFixed;
}

}  // namespace

absl::StatusOr<SampleMixing> FindSampleMixing(const Module& module, const Value* loss) {
  absl::flat_hash_map<const Value*, Content> contents;
  for (const Node* node = module.graph.first_node(); node; node = node->next()) {
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
    ASSIGN_OR_RETURN(const Content result, ResultOf(*node, inputs, module));
    for (const Value* output : node->outputs()) {
      if (output) contents[output] = result;
    }
  }
  auto it = contents.find(loss);
  if (it == contents.end() || !IsReduced(it->second)) return SampleMixing::kUnknown;
  return it->second == Content::kSum ? SampleMixing::kSum : SampleMixing::kMean;
}

void NoteSampleMixing(Module& module, const CompileOptions& options) {
  constexpr int kMost = 4;
  const int64_t parts = static_cast<int64_t>(options.microbatches) * module.replicas;
  if (parts == 1) return;
  int count = 0;
  for (const Node* node = module.graph.first_node(); node; node = node->next()) {
    const int mixed = MixedOperand(*node);
    // What has a gradient and mixes is a mean or sum in the loss, or was refused.
    const bool in_loss = module.mode == Mode::kTrain && !node->Is("BatchNormalization") && node->output(0) &&
                         IsFloat(node->output(0)->type.dtype);
    if (mixed < 0 || in_loss || ++count > kMost) continue;
    module.notes.push_back(absl::StrCat("node ", node->name(), " (", node->op(), ") mixes samples, ",
                                        Along(*node, mixed), ": those of each of the ", parts,
                                        " microbatches by themselves, so M matters (--microbatches)"));
  }
  if (count > kMost)
    module.notes.push_back(
        absl::StrCat("and ", Counted(count - kMost, "more node mixes", "more nodes mix"), " samples"));
}

}  // namespace pipec
