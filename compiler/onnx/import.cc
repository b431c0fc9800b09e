#include "compiler/onnx/import.h"

#include <exception>
#include <filesystem>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/baked_batch.h"
#include "compiler/onnx/bind_dimensions.h"
#include "compiler/onnx/bind_input.h"
#include "compiler/onnx/declared_type.h"
#include "compiler/onnx/emit_node.h"
#include "compiler/onnx/equal_weights.h"
#include "compiler/onnx/external_data.h"
#include "compiler/onnx/import_batch.h"
#include "compiler/onnx/import_nodes.h"
#include "compiler/onnx/initializers.h"
#include "compiler/onnx/pytorch_parameters.h"
#include "compiler/onnx/read_model.h"
#include "compiler/onnx/scope.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status Prefix(absl::string_view what, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

absl::Status AddInputs(const BoundInputs& bound, const ImportOptions& options, Module& module, Scope& scope) {
  module.microbatch_size = bound.microbatch_size;
  for (const BoundInput& input : bound.inputs) {
    if (input.name.empty() || scope.Owns(input.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", input.name, "' has no name, or the name of another"));
    }
    Value* value;
    if (auto it = options.bound_inputs.find(input.name); it != options.bound_inputs.end()) {
      absl::StatusOr<std::string> contents = BoundContents(it->second, input.type);
      if (!contents.ok()) return Prefix(absl::StrCat("--input ", input.name), contents.status());
      value = module.graph.AddConstant(input.name, input.type, *std::move(contents));
    } else {
      value = module.graph.AddValue(ValueKind::kInput, input.name, input.type);
      value->batch_axis = input.batched ? 0 : -1;
    }
    scope.Set(input.name, value);
  }
  return absl::OkStatus();
}

// The value of an output, under its name.
absl::StatusOr<Value*> OutputValue(const onnx::ValueInfoProto& info, const BakedBatch& batch, Module& module,
                                   const Scope& scope) {
  const Meaning* meaning = scope.Find(info.name());
  const std::string what = absl::StrCat("output '", info.name(), "'");
  if (!meaning || std::holds_alternative<Absent>(*meaning)) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is defined by nothing"));
  }
  if (std::holds_alternative<Sequence>(*meaning) || std::holds_alternative<EmptyOptional>(*meaning)) {
    return absl::UnimplementedError(absl::StrCat("is ", Describe(*meaning), ", only tensors are supported"));
  }
  ASSIGN_OR_RETURN(Value * value, TensorOf(*meaning));
  // Exporters write the batch of the export into the outputs, also where the inputs have a symbol.
  const bool same_batch = batch.written() == batch.samples();
  absl::Status declared = CheckDeclaredType(info, value->type, same_batch ? -1 : value->batch_axis);
  if (!declared.ok()) return absl::Status(declared.code(), absl::StrCat(what, " ", declared.message()));
  if (value->name() == info.name()) return value;
  NodeSpec identity{.op = "Identity", .name = absl::StrCat(info.name(), "/Identity"), .inputs = {value}};
  identity.output_names = {info.name()};
  ASSIGN_OR_RETURN(Node * node, EmitNode(module.graph, std::move(identity)));
  return node->output(0);
}

absl::Status AddOutputs(const onnx::GraphProto& graph, const ImportOptions& options, const BakedBatch& batch,
                        Module& module, const Scope& scope) {
  absl::Status first_refusal;
  for (const auto& info : graph.output()) {
    const absl::StatusOr<Value*> value = OutputValue(info, batch, module, scope);
    if (value.ok()) {
      module.graph.outputs.push_back(*value);
      continue;
    }
    const std::string why = absl::StrCat("output '", info.name(), "': ", value.status().message());
    if (!absl::IsUnimplemented(value.status())) return value.status();
    first_refusal.Update(absl::UnimplementedError(why));
    if (!options.drop_refused_outputs) return first_refusal;
    module.refused_outputs.push_back({.name = info.name(),
                                      .why = std::string(value.status().message()),
                                      .position = static_cast<int>(module.graph.outputs.size()),
                                      .is_float = MayBeFloat(info),
                                      .is_scalar = IsDeclaredScalar(info)});
    module.notes.push_back(absl::StrCat("left out: ", why));
  }
  return module.graph.outputs.empty() ? first_refusal : absl::OkStatus();
}

// An input with an initializer is a default that --input replaces; before IR version 4 it was a constant.
absl::Status DropReplacedInitializers(onnx::ModelProto& model, const ImportOptions& options) {
  onnx::GraphProto& graph = *model.mutable_graph();
  absl::flat_hash_set<std::string> replaced;
  for (const auto& info : graph.input()) {
    if (options.bound_inputs.contains(info.name())) replaced.insert(info.name());
  }
  auto& initializers = *graph.mutable_initializer();
  for (int i = initializers.size() - 1; i >= 0 && !replaced.empty(); --i) {
    if (!replaced.contains(initializers[i].name())) continue;
    if (model.ir_version() < 4) {
      return absl::InvalidArgumentError(
          absl::StrCat("--input ", initializers[i].name(),
                       ": an input with an initializer is a constant before IR version "
                       "4, and the model has IR version ",
                       model.ir_version()));
    }
    initializers.DeleteSubrange(i, 1);
  }
  return absl::OkStatus();
}

// Inputs that are initializers too must be declared as what those are.
absl::Status CheckDefaults(const onnx::GraphProto& graph,
                           const absl::flat_hash_set<std::string>& initializers, const Scope& scope) {
  for (const auto& info : graph.input()) {
    if (!initializers.contains(info.name())) continue;
    ASSIGN_OR_RETURN(const Value* value, TensorOf(*scope.Find(info.name())));
    if (absl::Status status = CheckDeclaredType(info, value->type); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat("initializer '", info.name(), "' ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status Build(onnx::ModelProto& model, const std::string& path, const ImportOptions& options,
                   BakedBatch& batch, Module& module) {
  RETURN_IF_ERROR(DropReplacedInitializers(model, options));
  onnx::GraphProto& graph = *model.mutable_graph();
  ASSIGN_OR_RETURN(Opsets opsets, ReadOpsets(model.opset_import()));
  // Before IR version 3 there were no opset imports, and one opset.
  if (opsets.empty() && model.ir_version() < 3) opsets[""] = 1;
  if (opsets.empty()) return absl::InvalidArgumentError("the model has no opset imports");
  if (auto it = opsets.find(""); it != opsets.end()) module.opset = it->second;
  ExternalDataResolver external(std::filesystem::path(path).parent_path().string(), options.allow_links,
                                options.allow_missing_weights);
  ASSIGN_OR_RETURN(const PyTorchParameters pytorch, RestorePyTorchParameters(model, external));
  module.notes.insert(module.notes.end(), pytorch.notes.begin(), pytorch.notes.end());
  absl::flat_hash_set<std::string> initializers;
  for (const auto& proto : graph.initializer()) initializers.insert(proto.name());
  for (const auto& proto : graph.sparse_initializer()) initializers.insert(proto.values().name());
  ASSIGN_OR_RETURN(const BoundInputs bound,
                   BindDimensions(graph, initializers, options, batch.wanted_samples(), batch.shared()));
  batch.Bind(bound.microbatch_size, bound.written, bound.alike);
  Scope scope;
  RETURN_IF_ERROR(AddInputs(bound, options, module, scope));
  Initializers reader(model, std::move(external), module.graph);
  RETURN_IF_ERROR(reader.Add(graph, pytorch, scope));
  RETURN_IF_ERROR(CheckDefaults(graph, initializers, scope));
  NodeImporter importer(module.graph, options, reader, batch);
  RETURN_IF_ERROR(importer.AddFunctions(model.functions()));
  RETURN_IF_ERROR(importer.Import(graph.node(), opsets, scope));
  for (std::string& note : reader.Notes()) module.notes.push_back(std::move(note));
  for (std::string& note : NoteEqualWeights(module.graph)) module.notes.push_back(std::move(note));
  return AddOutputs(graph, options, batch, module, scope);
}

absl::StatusOr<std::unique_ptr<Module>> ImportFile(const std::string& path, const ImportOptions& options,
                                                   BakedBatch& batch) {
  ASSIGN_OR_RETURN(onnx::ModelProto model, ReadModel(path));
  auto module = std::make_unique<Module>();
  module->model_name = std::filesystem::path(path).stem().string();
  try {
    RETURN_IF_ERROR(Prefix(path, Build(model, path, options, batch, *module)));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the onnx library refuses it: ", error.what()));
  }
  return module;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ImportModel(const std::string& path, const ImportOptions& options) {
  return ImportMicrobatch(options, [&](BakedBatch& batch) { return ImportFile(path, options, batch); });
}

}  // namespace pipec
