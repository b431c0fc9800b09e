// Attention becomes one node, which nowhere has its weights, the square of the sequence's length.
//   before:  s = Mul(MatMul(q, Transpose(k)), c); w = Softmax(Where(causal, s, -inf)); o = MatMul(w, v)
//   after:   o = ai.pipec::FusedAttention<scale = c, causal = 1>(q, k, v)
// The factor may stand at q, at k, at both or behind the product; masks are added or chosen by Where. One that
// hides what is behind each row, and is a constant, becomes the attribute; one other stays an operand. Left alone
// are weights that anybody else reads or that are dropped at random, masks that learn, and products that broadcast.
// Level model; after folding, which makes masks constants, and without dead users; before fuse-transpose-matmul,
// which would hide how k was transposed, and before gradients, whose nodes would read the weights.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/ops/op_info.h"
#include "passes/attention_pattern.h"
#include "passes/gradients/gradient.h"
#include "passes/passes.h"

namespace pipec {
namespace {

// Whether a float parameter can learn through this value.
bool Learns(const Value* value, absl::flat_hash_set<const Value*>& seen) {
  if (!value || !IsFloat(value->type.dtype) || !seen.insert(value).second) return false;
  if (value->kind() == ValueKind::kParameter) return true;
  const Node* node = value->producer();
  return node && !NoGradientFlows(node->op(), node->domain()) &&
         std::any_of(node->inputs().begin(), node->inputs().end(),
                     [&](const Value* v) { return Learns(v, seen); });
}

class Fuser {
 public:
  Fuser(Graph& graph, AttentionPattern found) : graph_(graph), found_(std::move(found)) {}

  // Whether the op takes these operands.
  bool Fits() const {
    TensorType keys = found_.keys->type;
    if (keys.shape.size() < 2) return false;
    std::swap(keys.shape[keys.shape.size() - 1], keys.shape[keys.shape.size() - 2]);
    // Types are all that counts here: stand-ins for values that are not there yet.
    Graph types;
    NodeSpec spec{.op = "FusedAttention", .domain = kPipecDomain, .attributes = OfPattern()};
    for (const TensorType& type : {found_.query->type, keys, found_.value->type})
      spec.inputs.push_back(types.AddValue(ValueKind::kInput, "x", type));
    if (found_.mask) spec.inputs.push_back(types.AddValue(ValueKind::kInput, "mask", found_.mask->type));
    spec.outputs.resize(1);
    const auto inferred = FindOp(spec.op, spec.domain)->infer(spec);
    return inferred.ok() && inferred->front() == found_.product->output(0)->type &&
           std::none_of(spec.inputs.begin(), spec.inputs.end(),
                        [](const Value* operand) { return operand->type.elements() == 0; });
  }

  void Run() {
    std::vector<Value*> operands = {found_.query, Keys(), found_.value};
    if (found_.mask) operands.push_back(found_.inverted ? Inverted(found_.mask) : found_.mask);
    found_.product->Become("FusedAttention", kPipecDomain, std::move(operands));
    found_.product->attributes = OfPattern();
    for (Node* node : found_.gone) EraseUnused(node);
  }

 private:
  Attributes OfPattern() const {
    Attributes attributes;
    attributes.Set("scale", static_cast<float>(found_.scale));
    if (found_.causal) attributes.Set("causal", int64_t{1});
    if (found_.zero_rows) attributes.Set("zero_rows", int64_t{1});
    if (found_.mask && found_.mask->type.dtype == DType::kBool)
      attributes.Set("fill", static_cast<float>(found_.fill));
    return attributes;
  }

  Value* Add(absl::string_view op, absl::string_view name, std::vector<Value*> inputs, Attributes attributes,
             TensorType type) {
    Node* node = graph_.AddNode({.op = std::string(op),
                                 .name = std::string(name),
                                 .inputs = std::move(inputs),
                                 .attributes = std::move(attributes),
                                 .outputs = {std::move(type)},
                                 .output_names = {std::string(name)}},
                                found_.product);
    SetBatchAxes(*node);
    return node->output(0);
  }

  // K [..., columns, depth] of what the first product reads.
  Value* Keys() {
    Value* const keys = found_.keys;
    const size_t rank = keys->type.shape.size();
    TensorType type = keys->type;
    std::swap(type.shape[rank - 1], type.shape[rank - 2]);
    const std::string name = absl::StrCat(keys->name(), "/keys");
    std::vector<int64_t> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[rank - 1], perm[rank - 2]);
    Node* const made = keys->producer();
    if (made && made->Is("Transpose") && made->attributes.Ints("perm").size() == rank) {
      const std::vector<int64_t> before = made->attributes.Ints("perm");
      for (int64_t& axis : perm) axis = before[axis];
      found_.gone.push_back(made);
      if (std::is_sorted(perm.begin(), perm.end())) return made->input(0);
      Attributes attributes;
      attributes.Set("perm", perm);
      return Add("Transpose", name, {made->input(0)}, std::move(attributes), type);
    }
    if (Value* const source = BehindReshapes(type)) return source;
    Attributes attributes;
    attributes.Set("perm", perm);
    return Add("Transpose", name, {keys}, std::move(attributes), type);
  }

  // PyTorch's exporter transposes keys as Reshape(Transpose(Reshape(k))) with all leading axes as one: k.
  Value* BehindReshapes(const TensorType& type) {
    const auto producer = [](const Value* value, absl::string_view op) -> Node* {
      Node* node = value ? value->producer() : nullptr;
      return node && node->Is(op) ? node : nullptr;
    };
    const size_t rank = type.shape.size();
    Node* const last = producer(found_.keys, "Reshape");
    Node* const transpose = last ? producer(last->input(0), "Transpose") : nullptr;
    Node* const first = transpose ? producer(transpose->input(0), "Reshape") : nullptr;
    if (!first || first->input(0)->type != type) return nullptr;
    const Shape& joined = first->output(0)->type.shape;
    if (transpose->attributes.Ints("perm") != std::vector<int64_t>{0, 2, 1} || joined.size() != 3 ||
        joined[1] != type.shape[rank - 2] || joined[2] != type.shape[rank - 1]) {
      return nullptr;
    }
    found_.gone.insert(found_.gone.end(), {last, transpose, first});
    return first->input(0);
  }

  Value* Inverted(Value* mask) {
    const std::string name = absl::StrCat(mask->name(), "/not");
    if (mask->kind() != ValueKind::kConstant || !mask->data.bytes)
      return Add("Not", name, {mask}, {}, mask->type);
    std::string bytes = *mask->data.bytes;
    for (char& byte : bytes) byte = byte == 0;
    Value* const inverted = graph_.AddConstant(name, mask->type, std::move(bytes));
    inverted->batch_axis = mask->batch_axis;
    return inverted;
  }

  // With the constants that nobody else reads.
  void EraseUnused(Node* node) {
    const auto is_unused = [&](const Value* value) {
      return value->uses().empty() &&
             std::find(graph_.outputs.begin(), graph_.outputs.end(), value) == graph_.outputs.end();
    };
    if (!is_unused(node->output(0))) return;
    const std::vector<Value*> inputs(node->inputs().begin(), node->inputs().end());
    graph_.Erase(node);
    const absl::flat_hash_set<Value*> distinct(inputs.begin(), inputs.end());
    for (Value* value : distinct) {
      if (value && value->kind() == ValueKind::kConstant && is_unused(value)) graph_.Erase(value);
    }
  }

  Graph& graph_;
  AttentionPattern found_;
};

}  // namespace

absl::StatusOr<bool> FuseAttention(Module& module, const PassContext&) {
  bool changed = false;
  std::vector<Node*> softmaxes;
  for (Node* node : module.graph.Nodes()) {
    if (node->Is("Softmax")) softmaxes.push_back(node);
  }
  KnownMasks known;
  for (Node* softmax : softmaxes) {
    auto found = FindAttention(softmax, module.graph.outputs, known);
    absl::flat_hash_set<const Value*> seen;
    if (!found || (module.mode == Mode::kTrain && Learns(found->mask, seen))) continue;
    Fuser fuser(module.graph, *std::move(found));
    if (!fuser.Fits()) continue;
    fuser.Run();
    changed = true;
  }
  return changed;
}

}  // namespace pipec
