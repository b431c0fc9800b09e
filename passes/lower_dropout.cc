// ONNX's Dropout becomes the helper op whose mask depends on seed, step, sample, node and element only;
// outside of training it goes.
//   before:        y, mask = Dropout(x, ratio)
//   after, train:  y, mask = ai.pipec::Dropout<ratio, key, batch_axis>(x)
//   after, infer:  x; a mask that is used becomes a constant that keeps everything
// In train mode a Dropout drops unless it says training_mode = false: exporters write inference form.
// Level model; after folding, which makes ratio and training_mode constants; before the batch axis, which its
// rows know.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "passes/passes.h"
#include "passes/stable_hash.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr float kDefaultRatio = 0.5f;

absl::Status Refuse(const Node& node, absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat("node '", node.name(), "' (Dropout): ", what));
}

absl::StatusOr<float> Ratio(const Node& node) {
  const Value* ratio = node.input(1);
  if (!ratio) return kDefaultRatio;
  if (ratio->kind() != ValueKind::kConstant || !ratio->data.bytes)
    return Refuse(node, "the ratio is not a constant");
  double value = 0;
  if (ratio->type.dtype == DType::kFloat32) {
    float narrow;
    std::memcpy(&narrow, ratio->data.bytes->data(), sizeof(narrow));
    value = narrow;
  } else if (ratio->type.dtype == DType::kFloat64) {
    std::memcpy(&value, ratio->data.bytes->data(), sizeof(value));
  } else {
    return Refuse(
        node, absl::StrCat("a ratio of type ", Name(ratio->type.dtype), " is not supported; use float32"));
  }
  if (!(value >= 0 && value < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", node.name(), "' (Dropout): ratio ", value, ", wanted 0 <= ratio < 1"));
  }
  return static_cast<float>(value);
}

absl::StatusOr<bool> SaysInference(const Node& node) {
  const Value* mode = node.input(2);
  if (!mode) return false;
  if (mode->kind() != ValueKind::kConstant || !mode->data.bytes)
    return Refuse(node, "training_mode is not a constant");
  return (*mode->data.bytes)[0] == 0;
}

// Uses of the result read the operand instead, uses of the mask a constant that keeps everything.
void PassThrough(Graph& graph, Node* node, const absl::flat_hash_set<const Value*>& outputs) {
  Value* result = node->output(0);
  Value* stand_in = node->input(0);
  std::vector<std::pair<Value*, std::string>> renamed;
  if (outputs.contains(result)) {
    // The output keeps its name.
    NodeSpec identity{
        .op = "Identity", .name = node->name(), .inputs = {stand_in}, .outputs = {result->type}};
    stand_in = graph.AddNode(std::move(identity), node)->output(0);
    renamed.emplace_back(stand_in, result->name());
  }
  graph.ReplaceAllUses(result, stand_in);
  if (Value* mask = node->output(1); mask && (!mask->uses().empty() || outputs.contains(mask))) {
    Value* ones = graph.AddConstant(mask->name(), mask->type, std::string(mask->type.bytes(), '\1'));
    graph.ReplaceAllUses(mask, ones);
    renamed.emplace_back(ones, mask->name());
  }
  graph.Erase(node);
  for (const auto& [value, name] : renamed) graph.Rename(value, name);
}

void Lower(Node* node, float ratio, uint32_t key) {
  node->Become("Dropout", kPipecDomain, {node->input(0)});
  node->attributes = {};
  node->attributes.Set("ratio", ratio);
  node->attributes.Set("key", static_cast<int64_t>(key));
  node->attributes.Set("batch_axis", static_cast<int64_t>(node->input(0)->batch_axis));
}

}  // namespace

absl::StatusOr<bool> LowerDropout(Module& module, const PassContext&) {
  const absl::flat_hash_set<const Value*> outputs(module.graph.outputs.begin(), module.graph.outputs.end());
  absl::flat_hash_set<uint32_t> keys;
  bool changed = false;
  for (Node* node : module.graph.Nodes()) {
    if (!node->Is("Dropout")) continue;
    ASSIGN_OR_RETURN(const float ratio, Ratio(*node));
    ASSIGN_OR_RETURN(const bool inference, SaysInference(*node));
    if (module.mode == Mode::kInfer || inference || ratio == 0) {
      PassThrough(module.graph, node, outputs);
    } else {
      uint32_t key = StableHash(node->name());
      while (!keys.insert(key).second) ++key;
      Lower(node, ratio, key);
    }
    changed = true;
  }
  return changed;
}

}  // namespace pipec
