// ONNX's BatchNormalization in training form becomes the helper op whose statistics the gradient needs, beside
// two nodes that move the running statistics, which are parameters of the model, in place.
//   before:  y, m', v' = BatchNormalization<training_mode = 1, epsilon, momentum>(x, scale, bias, m, v)
//   after:   y, mean, variance = ai.pipec::TrainingBatchNormalization<epsilon>(x, scale, bias, m, v)
//            m' = ai.pipec::RunningAverage<momentum>(m, mean), the same of v
// A stage runs its microbatches forward in their order, so the running statistics move in that order in every
// cut. In evaluation they stay, and are what is normalised with. Inference form keeps its statistics, also in
// training: it says so. Level model, train mode only; after the loss, whose check of mixed samples knows ONNX's
// op; before gradients.
#include "absl/strings/str_cat.h"
#include "passes/passes.h"
#include "runtime/base/counted.h"

namespace pipec {
namespace {

absl::Status Refuse(const Node& node, absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat("node '", node.name(), "' (BatchNormalization): ", what));
}

absl::Status Lower(Graph& graph, Node* node) {
  for (int k = 1; k < 3; ++k) {
    const Value* running = node->output(k);
    if (running && !running->uses().empty()) {
      return Refuse(*node, absl::StrCat("the loss depends on '", running->name(),
                                        "', a running statistic; they are kept, not computed with"));
    }
    const Value* start = node->input(k + 2);
    if (start->kind() != ValueKind::kParameter || start->uses().size() != 1) {
      return Refuse(*node,
                    absl::StrCat("running statistic '", start->name(),
                                 "' is no parameter of the model with this one use, so it cannot be kept"));
    }
  }
  const TensorType& channels = node->input(3)->type;
  if (node->input(0)->type.elements() <= channels.elements()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node '", node->name(),
        "' (BatchNormalization): a microbatch has one value a channel, whose variance is 0; train with ",
        "more samples a microbatch (--batch=N, at least 2 for each)"));
  }
  const std::vector<Value*> operands(node->inputs().begin(), node->inputs().end());
  NodeSpec spec{.op = "TrainingBatchNormalization",
                .domain = kPipecDomain,
                .name = node->name(),
                .inputs = operands,
                .outputs = {node->output(0)->type, channels, channels}};
  spec.attributes.Set("epsilon", node->attributes.Float("epsilon", 1e-5f));
  Node* lowered = graph.AddNode(std::move(spec), node);
  lowered->output(0)->batch_axis = node->output(0)->batch_axis;
  for (int k = 1; k < 3; ++k) {
    Value* running = operands[k + 2];
    NodeSpec average{.op = "RunningAverage",
                     .domain = kPipecDomain,
                     .name = absl::StrCat(running->name(), ".average"),
                     .inputs = {running, lowered->output(k)},
                     .outputs = {channels}};
    average.attributes.Set("momentum", node->attributes.Float("momentum", 0.9f));
    graph.AddNode(std::move(average), node);
  }
  graph.ReplaceAllUses(node->output(0), lowered->output(0));
  graph.Erase(node);
  return absl::OkStatus();
}

// An exporter that merges equal initializers lets a fresh BatchNormalization share its statistics with its scale and
// bias: what is stored stays what it is when those learn.
void KeepStoredStatistics(Graph& graph, Node* node) {
  for (int k = 3; k < 5; ++k) {
    Value* stored = node->input(k);
    if (stored->kind() != ValueKind::kParameter || stored->uses().size() == 1) continue;
    Value* kept = graph.AddValue(ValueKind::kConstant, absl::StrCat(stored->name(), ".stored"), stored->type);
    kept->data = stored->data;
    node->SetInput(k, kept);
  }
}

}  // namespace

absl::StatusOr<bool> LowerBatchNormalization(Module& module, const PassContext&) {
  int lowered = 0, frozen = 0;
  for (Node* node : module.graph.Nodes()) {
    if (!node->Is("BatchNormalization")) continue;
    if (node->attributes.Int("training_mode") == 0) {
      KeepStoredStatistics(module.graph, node);
      ++frozen;
      continue;
    }
    if (absl::Status status = Lower(module.graph, node); !status.ok()) return status;
    ++lowered;
  }
  if (frozen > 0) {
    module.notes.push_back(
        absl::StrCat(Counted(frozen, "BatchNormalization node", "BatchNormalization nodes"),
                     " in inference form: normalised with stored statistics, which do not move "
                     "(export in training mode for others)"));
  }
  if (lowered > 0 && module.microbatch_size == 1) {
    module.notes.push_back(
        "BatchNormalization takes its statistics of one sample at a time, that of a microbatch; more is "
        "usual (--batch, with fewer --microbatches than samples)");
  }
  return lowered > 0;
}

}  // namespace pipec
