#include "compiler/onnx/export/module.h"

#include <algorithm>
#include <exception>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/bodies/bodies.h"
#include "compiler/onnx/export/stages.h"
#include "compiler/onnx/export/values.h"
#include "compiler/onnx/schema/function_body.h"
#include "compiler/onnx/schema/opsets.h"
#include "compiler/ops/op_info.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kIrVersion = 10;  // the first whose functions say the types of their values

bool IsMessage(const Node& node) { return node.Is("Message", kPipecDomain); }

// A run of the exported model is one of training.
bool RunsInTraining(const Node& node) { return !node.attributes.Has("eval_only"); }

class Exporter {
 public:
  Exporter(const Module& module, const ExportOptions& options) : module_(module), options_(options) {}

  absl::StatusOr<std::string> Whole() {
    std::vector<const Node*> nodes;
    for (const Node* node = module_.graph.first_node(); node; node = node->next()) {
      if (RunsInTraining(*node)) nodes.push_back(node);
    }
    return Export(nodes, -1);
  }

  absl::StatusOr<std::string> Stage(int stage) {
    std::vector<const Node*> nodes;
    for (const Node* node = module_.graph.first_node(); node; node = node->next()) {
      if (node->stage == stage && !IsMessage(*node) && RunsInTraining(*node)) nodes.push_back(node);
    }
    return Export(nodes, stage);
  }

 private:
  // `stage`: whose nodes these are; -1: the whole module.
  absl::StatusOr<std::string> Export(const std::vector<const Node*>& nodes, int stage) {
    onnx::GraphProto& graph = *model_.mutable_graph();
    model_.set_ir_version(kIrVersion);
    model_.set_producer_name("pipec");
    graph.set_name(module_.model_name.empty() ? "model" : module_.model_name);
    if (stage >= 0) absl::StrAppend(graph.mutable_name(), ".stage_", stage);
    try {
      AddValues(nodes, stage);
      const std::vector<Output> outputs = Outputs(nodes, stage);
      if (stage < 0 && module_.level >= Level::kStaged) {
        absl::flat_hash_set<const Value*> needed;
        for (const Output& output : outputs) needed.insert(output.made_of.begin(), output.made_of.end());
        AddStageFunctions(nodes, needed, functions_, model_);
      } else {
        for (const Node* node : nodes) *graph.add_node() = NodeToProto(*node, functions_);
      }
      AddScalars(nodes);
      for (const Output& output : outputs) {
        if (output.name != output.made_of[0]->name()) FreeName(output.name, graph);
      }
      for (const Output& output : outputs) AddOutput(output);
      functions_.AddTo(model_);
      AddOpsets(model_);
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("the onnx library refuses what was exported: ", error.what()));
    }
    std::string bytes;
    if (model_.SerializeToString(&bytes)) return bytes;
    return absl::ResourceExhaustedError("the model is above protobuf's 2 GB without its external data");
  }

  // Inputs, initializers, types of results.
  void AddValues(const std::vector<const Node*>& nodes, int stage) {
    const absl::flat_hash_set<const Node*> inside(nodes.begin(), nodes.end());
    absl::flat_hash_set<const Value*> used;
    for (const Node* node : nodes) used.insert(node->inputs().begin(), node->inputs().end());
    used.erase(nullptr);
    if (stage < 0) {
      for (const Value* output : module_.graph.outputs) used.insert(output);
    }
    onnx::GraphProto& graph = *model_.mutable_graph();
    for (const Value* input : module_.graph.inputs()) {
      if (stage < 0 || used.contains(input)) AddInfo(*input, input->name(), *graph.mutable_input());
    }
    for (const Value* value : module_.graph.Values()) {
      const ValueKind kind = value->kind();
      if (kind == ValueKind::kParameter || kind == ValueKind::kConstant) {
        if (stage < 0 || used.contains(value)) AddTensor(*value, options_, graph);
      } else if (kind == ValueKind::kAccumulator || kind == ValueKind::kState) {
        if (used.contains(value)) AddZeros(*value, options_, graph);
      } else if (kind == ValueKind::kResult) {
        const bool made = inside.contains(value->producer());
        if (!made && stage >= 0 && used.contains(value))
          AddInfo(*value, value->name(), *graph.mutable_input());
        if (made && (stage >= 0 || module_.level < Level::kStaged))
          AddInfo(*value, value->name(), *graph.mutable_value_info());
      }
    }
  }

  // An output under its name outside, and what it is made of: a value, or a gradient and its scale.
  struct Output {
    std::string name;
    std::vector<const Value*> made_of;
  };

  std::vector<Output> Outputs(const std::vector<const Node*>& nodes, int stage) const {
    const absl::flat_hash_set<const Node*> inside(nodes.begin(), nodes.end());
    const auto made = [&](const Value* value) { return value && inside.contains(value->producer()); };
    std::vector<Output> outputs;
    for (const Value* value : module_.graph.outputs) {
      if (stage < 0 || made(value))
        outputs.push_back({value->output_name.empty() ? value->name() : value->output_name, {value}});
    }
    const Training& training = module_.training;
    for (const Node* scale : training.gradient_scales) {
      if (!inside.contains(scale)) continue;
      outputs.push_back({"loss", {scale->output(2)}});
      outputs.push_back({"gradient_norm", {scale->output(1)}});
      break;
    }
    for (const TrainedParameter& trained : training.parameters) {
      for (const Node* update : trained.updates) {
        if (!inside.contains(update)) continue;
        outputs.push_back(
            {absl::StrCat("grad:", trained.parameter->name()), {update->input(1), update->inputs().back()}});
        break;
      }
    }
    for (const Node* node : nodes) AddKept(*node, outputs);
    if (stage < 0) return outputs;
    for (const Message& message : module_.messages) {
      if (message.from_stage != stage) continue;
      for (size_t k = 0; k < message.node->outputs().size(); ++k)
        outputs.push_back({message.node->output(k)->name(), {message.node->input(k)}});
    }
    return outputs;
  }

  // What takes the place of a parameter, a sum or a state; of a parameter with several owners once.
  void AddKept(const Node& node, std::vector<Output>& outputs) const {
    if (AliasOf(node) != Alias::kSameMemory) return;
    for (size_t k = 0; k < node.outputs().size(); ++k) {
      const Value* place = node.input(AliasInput(node, static_cast<int>(k)));
      if (!node.output(k) || !place || place->producer()) continue;
      if (kept_.insert(place).second) outputs.push_back({node.output(k)->name(), {node.output(k)}});
    }
  }

  void AddOutput(const Output& output) {
    onnx::GraphProto& graph = *model_.mutable_graph();
    const Value& value = *output.made_of[0];
    AddInfo(value, output.name, *graph.mutable_output());
    if (output.made_of.size() == 1) {
      if (output.name != value.name()) *graph.add_node() = OneOutput("Identity", {value.name()}, output.name);
      return;
    }
    const std::string scale = absl::StrCat(output.name, ".scale");
    onnx::NodeProto cast = OneOutput("Cast", {output.made_of[1]->name()}, scale);
    SetInt("to", static_cast<int64_t>(value.type.dtype), cast);
    *graph.add_node() = cast;
    *graph.add_node() = OneOutput("Mul", {value.name(), scale}, output.name);
  }

  void AddScalars(const std::vector<const Node*>& nodes) {
    std::map<std::string, double> used;
    for (const Node* node : nodes) {
      for (const std::string& name : RunTimeScalarsOf(*node)) {
        auto given = options_.scalars.find(name);
        used[name] = given == options_.scalars.end() ? 0 : given->second;
      }
    }
    for (const auto& [name, value] : used) AddScalar(name, value, *model_.mutable_graph());
  }

  const Module& module_;
  const ExportOptions& options_;
  onnx::ModelProto model_;
  HelperFunctions functions_;
  mutable absl::flat_hash_set<const Value*> kept_;
};

}  // namespace

absl::StatusOr<std::string> ExportModule(const Module& module, const ExportOptions& options) {
  return Exporter(module, options).Whole();
}

absl::StatusOr<std::string> ExportStage(const Module& module, int stage, const ExportOptions& options) {
  return Exporter(module, options).Stage(stage);
}

}  // namespace pipec
