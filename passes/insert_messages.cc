// Sends every value that crosses stages through a message.
//
//   before:  stage 0: A -> h        stage 2: B(h)         W(h)
//   after:   stage 0: A -> h        stage 2: h@2 = Message(h), B(h@2), W(h@2)
//
// One message from stage to stage and kind: all activations together, all gradients together; once a step the
// accumulators of shared parameters (kTied), and norms and the loss (kNorm). Parameters, constants and inputs
// of the model do not cross: each rank has its own. Leaves level staged.
#include <algorithm>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "passes/passes.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using MessageKey = std::tuple<MessageKind, int, int>;  // kind, from stage, to stage

absl::StatusOr<MessageKey> KeyOf(const Module& module, const Value& value, const Node& consumer) {
  const Node& producer = *value.producer();
  int from = producer.stage, to = consumer.stage;
  if (consumer.kind == Kind::kU) {
    const bool accumulator = producer.kind == Kind::kI || producer.kind == Kind::kW;
    if (accumulator) return MessageKey(MessageKind::kTied, from, to);
    // Ranks exchange norms as a whole: one message from rank to rank, named by their first stages.
    const int sender = module.stages[from].rank;
    if (sender != module.stages[to].rank) from = StagesOfRank(module, sender).front();
    return MessageKey(MessageKind::kNorm, from, to);
  }
  const bool forward = producer.kind == Kind::kF;
  if (forward ? from > to : from < to || consumer.kind == Kind::kF) {
    return absl::InternalError(absl::StrCat(forward ? "forward" : "backward", " value ", value.name(),
                                            " of stage ", from, " is used by node ", consumer.name(),
                                            " of stage ", to));
  }
  return MessageKey(forward ? MessageKind::kActivation : MessageKind::kGradient, from, to);
}

Kind NodeKind(MessageKind kind) {
  return kind == MessageKind::kActivation ? Kind::kF : kind == MessageKind::kGradient ? Kind::kI : Kind::kU;
}

// After the last producer, and with the update's messages behind the whole backward pass.
absl::Status Insert(Module& module, const MessageKey& key, const std::vector<Value*>& values,
                    Node* first_update) {
  const auto& [kind, from, to] = key;
  const Node* last = values[0]->producer();
  NodeSpec spec{"Message", kPipecDomain, absl::StrCat("message ", from, ">", to), values};
  for (const Value* value : values) {
    if (value->producer()->index > last->index) last = value->producer();
    spec.outputs.push_back(value->type);
    spec.output_names.push_back(absl::StrCat(value->name(), "@", to));
  }
  const int produced_at = last->index;
  spec.kind = NodeKind(kind);
  spec.stage = to;
  const bool before_update = spec.kind == Kind::kU && last->kind != Kind::kU;
  Node* message = module.graph.AddNode(std::move(spec), before_update ? first_update : last->next());
  for (int k = 0; k < values.size(); ++k) {
    message->output(k)->batch_axis = values[k]->batch_axis;
    const std::vector<Use> uses(values[k]->uses().begin(), values[k]->uses().end());
    for (const Use& use : uses) {
      if (use.node->stage != to || use.node == message) continue;
      ASSIGN_OR_RETURN(const MessageKey own, KeyOf(module, *values[k], *use.node));
      if (own != key) continue;
      if (use.node->index <= produced_at) {
        return absl::InternalError(absl::StrCat("node ", use.node->name(), " of stage ", to,
                                                " stands before stage ", from, " made its operand ",
                                                values[k]->name()));
      }
      use.node->SetInput(use.index, message->output(k));
    }
  }
  module.messages.push_back({message, kind, from, to});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> InsertMessages(Module& module, const PassContext&) {
  if (module.stages.empty())
    return absl::FailedPreconditionError("insert-messages needs partition-stages before it");
  module.graph.NumberNodes();
  std::map<MessageKey, std::vector<Value*>> crossing;
  Node* first_update = nullptr;
  for (Node* node : module.graph.Nodes()) {
    if (node->kind == Kind::kU && !first_update) first_update = node;
    for (Value* value : node->outputs()) {
      if (!value) continue;
      for (const Use& use : value->uses()) {
        if (use.node->stage == node->stage) continue;
        ASSIGN_OR_RETURN(const MessageKey key, KeyOf(module, *value, *use.node));
        std::vector<Value*>& values = crossing[key];
        if (values.empty() || values.back() != value) values.push_back(value);
      }
    }
  }
  for (const auto& [key, values] : crossing) RETURN_IF_ERROR(Insert(module, key, values, first_update));
  module.graph.NumberNodes();
  return true;
}

}  // namespace pipec
