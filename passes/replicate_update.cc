// Gives every rank the update of the parameters it uses.
//
//   before:  a0, a1 -> Add -> g -> SquaredNorm -> n0 -> GradientScale -> scale;  Adam(p, g, m, v, scale)
//   after:   the same on each rank that uses p, with its own m and v and its own GradientScale; SquaredNorm
//   on the first
//            only; the norms of a rank go through one Pack, and every GradientScale reads the packs of all
//            ranks
//
// Needs stages; keeps level training. All owners compute the same numbers from the same operands in the same
// order, so copies of a parameter stay equal to the bit, and so does everything else at any number of ranks:
// norms are added in parameter order wherever they come from (attribute `order`).
#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "passes/passes.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kGradientOperand = 1;  // optimizer ops are (p, g, states..., scale)
constexpr int kFirstState = 2;

// Rank -> the first of its stages that uses the parameter.
std::map<int, int> Owners(const Module& module, const Value& parameter) {
  std::map<int, int> owners;
  for (const Use& use : parameter.uses()) {
    if (use.node->kind == Kind::kU) continue;
    const int stage = use.node->stage;
    auto [it, added] = owners.emplace(module.stages[stage].rank, stage);
    it->second = std::min(it->second, stage);
  }
  return owners;
}

// The update nodes that make `value` (the sum over the uses of a parameter), operands first.
void CollectSum(Value* value, absl::flat_hash_set<Node*>& seen, std::vector<Node*>& nodes) {
  Node* node = value->producer();
  if (!node || node->kind != Kind::kU || !seen.insert(node).second) return;
  for (Value* input : node->inputs()) {
    if (input) CollectSum(input, seen, nodes);
  }
  nodes.push_back(node);
}

NodeSpec Copy(const Node& node, const absl::flat_hash_map<Value*, Value*>& replaced, int rank, int stage) {
  NodeSpec spec{node.op(), node.domain(), absl::StrCat(node.name(), "@rank", rank)};
  for (Value* input : node.inputs()) {
    auto it = replaced.find(input);
    spec.inputs.push_back(it == replaced.end() ? input : it->second);
  }
  spec.attributes = node.attributes;
  for (const Value* output : node.outputs()) spec.outputs.push_back(output ? output->type : TensorType{});
  spec.kind = Kind::kU;
  spec.stage = stage;
  spec.origin = node.origin;
  return spec;
}

// Copies of one parameter's sum and optimizer for the owners after the first, in front of `norms_end` and at
// the end.
void AddOwner(Graph& graph, TrainedParameter& trained, const std::vector<Node*>& sum, int rank, int stage,
              Node* norms_end) {
  absl::flat_hash_map<Value*, Value*> replaced;
  for (const Node* node : sum) {
    const Node* copy = graph.AddNode(Copy(*node, replaced, rank, stage), norms_end);
    for (int k = 0; k < node->outputs().size(); ++k) replaced[node->output(k)] = copy->output(k);
  }
  std::vector<Value*> states;
  for (Value* state : trained.states[0]) {
    states.push_back(
        graph.AddValue(ValueKind::kState, absl::StrCat(state->name(), "@rank", rank), state->type));
    replaced[state] = states.back();
  }
  trained.updates.push_back(graph.AddNode(Copy(*trained.updates[0], replaced, rank, stage)));
  trained.states.push_back(std::move(states));
}

// Where parameter k's norm lies when the packs of all ranks are laid end to end.
struct PackedNorms {
  std::vector<std::vector<Value*>> of_rank;
  std::vector<std::pair<int, int>> place;  // per parameter: rank, place in its pack
};

void ReplaceGradientScale(Module& module, const PackedNorms& norms) {
  Graph& graph = module.graph;
  Node* original = module.training.gradient_scales[0];
  const int ranks = static_cast<int>(norms.of_rank.size());
  std::vector<Value*> packs;
  std::vector<int64_t> first(ranks, 0);
  for (int r = 0; r < ranks; ++r) {
    if (r > 0) first[r] = first[r - 1] + static_cast<int64_t>(norms.of_rank[r - 1].size());
    if (norms.of_rank[r].empty()) continue;
    const TensorType type{DType::kFloat64, {static_cast<int64_t>(norms.of_rank[r].size())}};
    Node* pack = graph.AddNode({"Pack",
                                kPipecDomain,
                                absl::StrCat("norms@rank", r),
                                norms.of_rank[r],
                                {},
                                {type},
                                {},
                                Kind::kU,
                                StagesOfRank(module, r).front()},
                               original);
    packs.push_back(pack->output(0));
  }
  std::vector<int64_t> order;
  for (const auto& [rank, place] : norms.place) order.push_back(first[rank] + place);

  std::vector<Node*> scales;
  for (int r = 0; r < ranks; ++r) {
    NodeSpec spec = Copy(*original, {}, r, StagesOfRank(module, r).front());
    spec.inputs.resize(2);
    spec.inputs.insert(spec.inputs.end(), packs.begin(), packs.end());
    spec.attributes.Set("order", order);
    scales.push_back(graph.AddNode(std::move(spec), original));
  }
  for (const TrainedParameter& trained : module.training.parameters) {
    for (Node* update : trained.updates) {
      update->SetInput(static_cast<int>(update->inputs().size()) - 1,
                       scales[module.stages[update->stage].rank]->output(0));
    }
  }
  graph.Erase(original);
  module.training.gradient_scales = std::move(scales);
}

// Each stage updates by itself.
absl::StatusOr<bool> UpdateWhereUsed(Module& module, const std::string& schedule) {
  for (TrainedParameter& trained : module.training.parameters) {
    const std::map<int, int> owners = Owners(module, *trained.parameter);
    if (owners.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "schedule ", schedule, " updates every stage by itself, so that ranks ", owners.begin()->first,
          " and ", owners.rbegin()->first, " cannot share parameter '", trained.parameter->name(),
          "': its copies would see different gradients; --cut between other values, or "
          "--schedule=pipedream-2bw, works"));
    }
    absl::flat_hash_set<Node*> seen;
    std::vector<Node*> sum;
    CollectSum(trained.updates[0]->input(kGradientOperand), seen, sum);
    for (Node* node : sum) node->stage = owners.begin()->second;
    trained.updates[0]->stage = owners.begin()->second;
  }
  Node* scale = module.training.gradient_scales[0];
  scale->stage = scale->origin->stage;
  return true;
}

}  // namespace

absl::StatusOr<bool> ReplicateUpdate(Module& module, const PassContext& context) {
  if (module.stages.empty())
    return absl::FailedPreconditionError("replicate-update needs partition-stages before it");
  Training& training = module.training;
  if (training.gradient_scales.size() != 1)
    return absl::InternalError("replicate-update needs exactly one GradientScale");
  int ranks = 0;
  for (const Stage& stage : module.stages) ranks = std::max(ranks, stage.rank + 1);

  if (!training.has_norm) return UpdateWhereUsed(module, context.options.schedule);
  PackedNorms norms{std::vector<std::vector<Value*>>(ranks), {}};
  for (TrainedParameter& trained : training.parameters) {
    Node* optimizer = trained.updates[0];
    Value* gradient = optimizer->input(kGradientOperand);
    absl::flat_hash_set<Node*> seen;
    std::vector<Node*> sum;
    CollectSum(gradient, seen, sum);
    Node* norm = nullptr;
    for (const Use& use : gradient->uses()) {
      if (use.node->Is("SquaredNorm", kPipecDomain)) norm = use.node;
    }
    const std::map<int, int> owners = Owners(module, *trained.parameter);
    if (!norm || owners.empty() || optimizer->inputs().size() != kFirstState + trained.states[0].size() + 1) {
      return absl::InternalError(absl::StrCat("the update of parameter ", trained.parameter->name(),
                                              " is not the one build-update makes"));
    }
    const auto [first_rank, first_stage] = *owners.begin();
    for (Node* node : sum) node->stage = first_stage;
    norm->stage = optimizer->stage = first_stage;
    norms.place.push_back({first_rank, static_cast<int>(norms.of_rank[first_rank].size())});
    norms.of_rank[first_rank].push_back(norm->output(0));
    for (auto it = std::next(owners.begin()); it != owners.end(); ++it) {
      AddOwner(module.graph, trained, sum, it->first, it->second, training.gradient_scales[0]);
    }
  }
  ReplaceGradientScale(module, norms);
  return true;
}

}  // namespace pipec
