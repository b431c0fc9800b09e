#include "compiler/onnx/import.h"

#include <exception>
#include <filesystem>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/add_outputs.h"
#include "compiler/onnx/batch/baked_batch.h"
#include "compiler/onnx/batch/bind_dimensions.h"
#include "compiler/onnx/batch/import_batch.h"
#include "compiler/onnx/bind_input.h"
#include "compiler/onnx/declared_type.h"
#include "compiler/onnx/import_nodes.h"
#include "compiler/onnx/in_place/unfold_inputs.h"
#include "compiler/onnx/initializers.h"
#include "compiler/onnx/pytorch/equal_weights.h"
#include "compiler/onnx/pytorch/pytorch_parameters.h"
#include "compiler/onnx/read/external_data.h"
#include "compiler/onnx/read/read_model.h"
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
  module.batch_is_written = bound.written > 0;
  std::vector<std::string> past;
  for (const BoundInput& input : bound.inputs) {
    if (input.name.empty() || scope.Owns(input.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", input.name, "' has no name, or the name of another"));
    }
    Value* value;
    if (input.is_past) {
      value = module.graph.AddConstant(input.name, input.type, std::string());
      past.push_back(input.name);
    } else if (auto it = options.bound_inputs.find(input.name); it != options.bound_inputs.end()) {
      absl::StatusOr<std::string> contents = BoundContents(it->second, input.type);
      if (!contents.ok()) return Prefix(absl::StrCat("--input ", input.name), contents.status());
      value = module.graph.AddConstant(input.name, input.type, *std::move(contents));
    } else {
      value = module.graph.AddValue(ValueKind::kInput, input.name, input.type);
      value->batch_axis = input.batched ? 0 : -1;
    }
    scope.Set(input.name, value);
  }
  if (!past.empty()) {
    module.notes.push_back(
        absl::StrCat("nothing is remembered: ", absl::StrJoin(past, ", "), " have length 0 (--dim)"));
  }
  return absl::OkStatus();
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
  if (!options.infers) module.notes.insert(module.notes.end(), pytorch.notes.begin(), pytorch.notes.end());
  ImportOptions binding = options;
  ASSIGN_OR_RETURN(const std::vector<UnfoldedInput> unfolded, UnfoldInputs(graph, binding.dims));
  absl::flat_hash_set<std::string> initializers;
  for (const auto& proto : graph.initializer()) initializers.insert(proto.name());
  for (const auto& proto : graph.sparse_initializer()) initializers.insert(proto.values().name());
  ASSIGN_OR_RETURN(const BoundInputs bound,
                   BindDimensions(graph, initializers, binding, batch.wanted_samples(), batch.shared()));
  batch.Bind(bound.microbatch_size, bound.written, bound.alike);
  Scope scope;
  RETURN_IF_ERROR(AddInputs(bound, options, module, scope));
  NameUnfolded(unfolded, scope);
  Initializers reader(model, std::move(external), module.graph);
  RETURN_IF_ERROR(reader.Add(graph, pytorch, scope));
  RETURN_IF_ERROR(CheckDefaults(graph, initializers, scope));
  NodeImporter importer(module.graph, options, reader, batch);
  RETURN_IF_ERROR(importer.AddFunctions(model.functions()));
  RETURN_IF_ERROR(importer.Import(graph.node(), opsets, scope));
  for (std::string& note : reader.Notes()) module.notes.push_back(std::move(note));
  for (std::string& note : NoteEqualWeights(module.graph)) module.notes.push_back(std::move(note));
  return AddOutputs(graph, options, batch, importer.counted(), scope, module);
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
