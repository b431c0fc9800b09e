// --precision=bf16 or fp16: casts to the type that is computed in, by the op table's precision classes.
//   before:  y = MatMul(x, w); s = Softmax(y); z = Mul(s, y)                      all float32
//   after:   y = MatMul(x, Cast(w)); s = Softmax(Cast(y)); z = Mul(Cast(s), y)     x, y, z bfloat16; w, s float32
// Parameters stay float32, the masters; each use has a cast of its own, in front of its consumer, so that it
// lies in the consumer's stage wherever the cut is. A result that float32 ops make is cast behind its producer,
// once for all who want it small; one that is small is cast in front of each float32 op that reads it. So what
// lies between two nodes, and may have to travel, is small.
//
// An op of class kFollow is computed in float32 where an operand as large as its result is (PyTorch: where any
// is), or where an operand is and none but float32 ops read the result; else in the small type. Gradients
// follow: build-gradients differentiates the casts like any node.
//
// Level model; after the last change of forward nodes, losses and normalisations included; before gradients,
// which then have the types of what they are gradients of.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/schema/infer.h"
#include "compiler/onnx/schema/type_group.h"
#include "compiler/ops/precision.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "runtime/base/counted.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

bool InFloat32(const Node& node) {
  const PrecisionClass precision = PrecisionClassOf(node.op(), node.domain());
  return precision == PrecisionClass::kFloat32 || precision == PrecisionClass::kNorm;
}

int64_t ElementsOf(const Value* value) { return value ? value->type.elements() : 0; }

class CastInserter {
 public:
  CastInserter(Graph& graph, DType small) : graph_(graph), small_(small) {}

  absl::Status Run() {
    for (Node* node : graph_.Nodes()) {
      if (IsWeightOnly(*node)) {
        weight_only_.insert(node);
      } else if (!node->Is("Cast")) {
        RETURN_IF_ERROR(Convert(node));
      }
    }
    WidenOutputs();
    return absl::OkStatus();
  }

  int small_nodes() const { return small_nodes_; }

 private:
  bool IsWeight(const Value* value) const {
    return value->kind() == ValueKind::kParameter || value->kind() == ValueKind::kConstant ||
           weight_only_.contains(value->producer());
  }

  bool IsWeightOnly(const Node& node) const {
    return IsDeterministic(node.op(), node.domain()) &&
           std::all_of(node.inputs().begin(), node.inputs().end(),
                       [&](const Value* input) { return !input || IsWeight(input); });
  }

  // Whether a value is small, or is float32 only by the way it was made. Inputs are float32: positions, say.
  bool MayBeSmall(const Value* value) const {
    return value->type.dtype == small_ || as_good_small_.contains(value);
  }

  bool ComputesSmall(const Node& node, const TypeGroup& group) const {
    const PrecisionClass precision = PrecisionClassOf(node.op(), node.domain());
    if (precision != PrecisionClass::kFollow) return precision == PrecisionClass::kSmall;
    int64_t size = 0;
    bool read_in_float32 = true;
    for (const Value* output : node.outputs()) {
      size = std::max(size, ElementsOf(output));
      if (!output) continue;
      for (const Use& use : output->uses()) read_in_float32 &= InFloat32(*use.node);
    }
    bool activations = false;
    for (int k : group.inputs) {
      const Value* operand = node.input(k);
      if (IsWeight(operand)) continue;
      activations = true;
      if (!MayBeSmall(operand) && (read_in_float32 || ElementsOf(operand) >= size)) return false;
    }
    return activations;
  }

  absl::Status Convert(Node* node) {
    const TypeGroup group = TypeGroupOf(*node, small_);
    if (group.inputs.size() == 1 && group.outputs.empty()) return absl::OkStatus();  // Shape, ArgMax, ...
    const bool small = !group.inputs.empty() && ComputesSmall(*node, group);
    for (int k = 0; k < static_cast<int>(node->inputs().size()); ++k) {
      Value* operand = node->input(k);
      if (!operand) continue;
      if (small && std::binary_search(group.inputs.begin(), group.inputs.end(), k)) {
        ASSIGN_OR_RETURN(operand, Narrowed(operand, node));
      } else if (narrow_.contains(operand)) {
        operand = Widened(operand, node);
      }
      if (operand != node->input(k)) node->SetInput(k, operand);
    }
    if (small) {
      ++small_nodes_;
      for (int k : group.outputs) Narrow(node->output(k));
    } else if (PrecisionClassOf(node->op(), node->domain()) == PrecisionClass::kNorm) {
      as_good_small_.insert(node->output(0));
    } else if (ReadsWeightsOnly(*node, group)) {
      for (int k : group.outputs) as_good_small_.insert(node->output(k));
    }
    return absl::OkStatus();
  }

  // Rows that Gather takes out of a parameter, and the like: activations that are float32 as the parameter is.
  bool ReadsWeightsOnly(const Node& node, const TypeGroup& group) const {
    bool parameters = false;
    for (int k : group.inputs) {
      if (!IsWeight(node.input(k))) return false;
      parameters |= node.input(k)->kind() != ValueKind::kConstant;
    }
    return parameters;
  }

  void Narrow(Value* value) {
    value->type.dtype = small_;
    narrow_.insert(value);
  }

  Value* AddCast(Value* value, DType to, Node* before) {
    NodeSpec spec{.op = "Cast",
                  .name = absl::StrCat(value->name(), "/", Name(to)),
                  .inputs = {value},
                  .outputs = {{to, value->type.shape}},
                  .output_names = {absl::StrCat(value->name(), "/", Name(to))}};
    spec.attributes.Set("to", static_cast<int64_t>(to));
    Value* cast = graph_.AddNode(std::move(spec), before)->output(0);
    cast->batch_axis = value->batch_axis;
    return cast;
  }

  absl::StatusOr<Value*> Narrowed(Value* value, Node* consumer) {
    if (value->type.dtype == small_) return value;
    if (value->kind() == ValueKind::kConstant) return NarrowedConstant(value);
    if (IsWeight(value) || value->kind() == ValueKind::kInput) return AddCast(value, small_, consumer);
    Value*& known = narrowed_[value];
    if (!known) known = AddCast(value, small_, value->producer()->next());
    return known;
  }

  Value* Widened(Value* value, Node* consumer) { return AddCast(value, DType::kFloat32, consumer); }

  // Finite numbers stay finite: the least float32, which masks, masks in float16 too.
  absl::StatusOr<Value*> NarrowedConstant(Value* value) {
    Value*& known = narrowed_[value];
    if (known) return known;
    ASSIGN_OR_RETURN(const std::string bytes, ReadData(*value));
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    const float largest = small_ == DType::kFloat16 ? 65504.0f : 0x1.fep127f;
    for (float& number : numbers) {
      if (std::isfinite(number)) number = std::clamp(number, -largest, largest);
    }
    known = graph_.AddConstant(absl::StrCat(value->name(), "/", Name(small_)), {small_, value->type.shape},
                               RoundToSmallFloats(small_, numbers));
    known->batch_axis = value->batch_axis;
    known->counts_samples = value->counts_samples;
    return known;
  }

  // The outputs of the model, in mode infer, keep their types and names.
  void WidenOutputs() {
    absl::flat_hash_map<Value*, Value*> wide;
    for (Value*& output : graph_.outputs) {
      if (!narrow_.contains(output)) continue;
      Value*& cast = wide[output];
      if (!cast) {
        const std::string name = output->name();
        graph_.Rename(output, absl::StrCat(name, "/", Name(small_)));
        cast = AddCast(output, DType::kFloat32, nullptr);
        graph_.Rename(cast, name);
      }
      output = cast;
    }
  }

  Graph& graph_;
  const DType small_;
  absl::flat_hash_set<const Node*> weight_only_;
  absl::flat_hash_set<const Value*> as_good_small_;
  absl::flat_hash_set<const Value*> narrow_;      // results that were float32
  absl::flat_hash_map<Value*, Value*> narrowed_;  // float32 result or constant -> what is cast from it
  int small_nodes_ = 0;
};

}  // namespace

absl::StatusOr<bool> InsertCasts(Module& module, const PassContext& context) {
  const DType small = context.options.precision;
  if (small == DType::kFloat32) return false;
  module.precision = small;
  CastInserter inserter(module.graph, small);
  RETURN_IF_ERROR(inserter.Run());
  module.notes.push_back(absl::StrCat("computed in ", Name(small),
                                      " (--precision): ", Counted(inserter.small_nodes(), "node", "nodes"),
                                      "; parameters, sums, losses and what loses accuracy in float32"));
  return true;
}

}  // namespace pipec
