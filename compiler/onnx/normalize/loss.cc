// Before: loss, log_prob = SoftmaxCrossEntropyLoss<reduction = "mean">(scores, labels, weights)
// After:  sum, weight, lse = ai.pipec::SoftmaxCrossEntropy<reduction = "sum">(scores, labels, weights)
//         loss = Div(sum, weight);  log_prob = LogSoftmax(scores)
// With the sum and its divisor apart, microbatches can be added up before the division.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/normalize/normalize.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int64_t kClassAxis = 1;

}  // namespace

absl::Status NormalizeLoss(PendingNode& node) {
  const bool softmax = node.spec.op == "SoftmaxCrossEntropyLoss";
  if (!softmax && node.spec.op != "NegativeLogLikelihoodLoss") return absl::OkStatus();
  const std::string name = node.spec.name.empty() ? node.spec.op : node.spec.name;
  const std::string reduction = node.spec.attributes.String("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none") {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown reduction '", reduction, "'; there are mean, sum, none"));
  }
  NodeSpec helper{.op = softmax ? "SoftmaxCrossEntropy" : "NegativeLogLikelihood",
                  .domain = kPipecDomain,
                  .name = name,
                  .inputs = node.spec.inputs};
  helper.attributes.Set("axis", kClassAxis);
  helper.attributes.Set("reduction", std::string(reduction == "none" ? "none" : "sum"));
  if (node.spec.attributes.Has("ignore_index"))
    helper.attributes.Set("ignore_index", node.spec.attributes.Int("ignore_index"));
  if (softmax) helper.attributes.Set("label_smoothing", 0.0f);
  ASSIGN_OR_RETURN(Node * loss, EmitNode(node.graph, std::move(helper), softmax ? 3 : 2));
  node.results.push_back(loss->output(0));
  if (reduction == "mean") {
    ASSIGN_OR_RETURN(Node * mean, EmitNode(node.graph, {.op = "Div",
                                                        .name = absl::StrCat(name, "/mean"),
                                                        .inputs = {loss->output(0), loss->output(1)}}));
    node.results[0] = mean->output(0);
  }
  if (node.outputs > 1) {
    NodeSpec log_prob{
        .op = "LogSoftmax", .name = absl::StrCat(name, "/log_prob"), .inputs = {node.spec.inputs[0]}};
    log_prob.attributes.Set("axis", kClassAxis);
    ASSIGN_OR_RETURN(Node * added, EmitNode(node.graph, std::move(log_prob)));
    node.results.push_back(added->output(0));
  }
  return absl::OkStatus();
}

}  // namespace pipec
