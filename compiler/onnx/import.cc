#include "compiler/onnx/import.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/bind_dimensions.h"
#include "compiler/onnx/bind_input.h"
#include "compiler/onnx/emit_node.h"
#include "compiler/onnx/external_data.h"
#include "compiler/onnx/import_nodes.h"
#include "compiler/onnx/read_model.h"
#include "compiler/onnx/tensor_data.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using Scope = NodeImporter::Scope;

absl::Status Prefix(absl::string_view what, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

// Small integer tensors are what shapes are made of: needed now, also when they lie in a file.
absl::Status LoadIfShape(Tensor& tensor) {
  constexpr uint64_t kSmallBytes = 4096;
  TensorData& data = tensor.data;
  if (!data.file || data.length > kSmallBytes || IsFloat(tensor.type.dtype)) return absl::OkStatus();
  std::string bytes(data.length, '\0');
  std::ifstream file(*data.file, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(data.offset));
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    return absl::NotFoundError(absl::StrCat(*data.file, " cannot be read"));
  }
  data = {.bytes = std::make_shared<const std::string>(std::move(bytes)), .length = data.length};
  return absl::OkStatus();
}

absl::Status AddInitializers(onnx::GraphProto& graph, ExternalDataResolver& external, Module& module,
                             Scope& scope) {
  std::vector<std::string> scalars;
  for (auto& proto : *graph.mutable_initializer()) {
    const bool in_file = proto.data_location() == onnx::TensorProto::EXTERNAL;
    absl::StatusOr<Tensor> tensor = in_file ? external.Resolve(proto) : TakeInlineTensor(proto);
    if (tensor.ok()) {
      if (absl::Status loaded = LoadIfShape(*tensor); !loaded.ok()) tensor = loaded;
    }
    const std::string what = absl::StrCat("initializer '", proto.name(), "'");
    if (!tensor.ok()) return Prefix(what, tensor.status());
    if (proto.name().empty() || scope.contains(proto.name())) {
      return absl::InvalidArgumentError(absl::StrCat(what, " has no name, or the name of another"));
    }
    const bool scalar = tensor->type.shape.empty();
    const bool learns = IsFloat(tensor->type.dtype) && !scalar;
    if (IsFloat(tensor->type.dtype) && scalar) scalars.push_back(proto.name());
    Value* value = module.graph.AddValue(learns ? ValueKind::kParameter : ValueKind::kConstant, proto.name(),
                                         std::move(tensor->type));
    value->data = std::move(tensor->data);
    scope[proto.name()] = value;
  }
  if (graph.sparse_initializer_size() > 0) {
    return absl::UnimplementedError(absl::StrCat("initializer '", graph.sparse_initializer(0).values().name(),
                                                 "' is sparse, which is not supported"));
  }
  if (!scalars.empty()) {
    const int count = static_cast<int>(scalars.size());
    if (count > 4) scalars.resize(4);
    module.notes.push_back(
        absl::StrCat(count, " float initializer(s) of shape [] are taken as constants, not as parameters: ",
                     absl::StrJoin(scalars, ", "), count > 4 ? ", ..." : ""));
  }
  return absl::OkStatus();
}

absl::Status AddInputs(const BoundInputs& bound, const ImportOptions& options, Module& module, Scope& scope) {
  module.microbatch_size = bound.microbatch_size;
  for (const BoundInput& input : bound.inputs) {
    if (input.name.empty() || scope.contains(input.name)) {
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
    scope[input.name] = value;
  }
  return absl::OkStatus();
}

absl::Status AddOutputs(const onnx::GraphProto& graph, Module& module, const Scope& scope) {
  for (const auto& info : graph.output()) {
    auto it = scope.find(info.name());
    if (it == scope.end() || !it->second) {
      return absl::InvalidArgumentError(absl::StrCat("output '", info.name(), "' is defined by nothing"));
    }
    Value* value = it->second;
    const int declared = info.type().tensor_type().elem_type();
    if (declared != 0 && declared != static_cast<int>(value->type.dtype)) {
      return absl::InvalidArgumentError(absl::StrCat("output '", info.name(),
                                                     "' is declared as element type ", declared, " but is ",
                                                     ToString(value->type)));
    }
    if (value->name() != info.name()) {
      NodeSpec identity{.op = "Identity", .name = absl::StrCat(info.name(), "/Identity"), .inputs = {value}};
      identity.output_names = {info.name()};
      ASSIGN_OR_RETURN(Node * node, EmitNode(module.graph, std::move(identity)));
      value = node->output(0);
    }
    module.graph.outputs.push_back(value);
  }
  return absl::OkStatus();
}

absl::Status Build(onnx::ModelProto& model, const std::string& path, const ImportOptions& options,
                   Module& module) {
  onnx::GraphProto& graph = *model.mutable_graph();
  ASSIGN_OR_RETURN(Opsets opsets, ReadOpsets(model.opset_import()));
  // Before IR version 3 there were no opset imports, and one opset.
  if (opsets.empty() && model.ir_version() < 3) opsets[""] = 1;
  if (opsets.empty()) return absl::InvalidArgumentError("the model has no opset imports");
  absl::flat_hash_set<std::string> initializers;
  for (const auto& proto : graph.initializer()) initializers.insert(proto.name());
  ASSIGN_OR_RETURN(const BoundInputs bound, BindDimensions(graph, initializers, options));
  Scope scope;
  RETURN_IF_ERROR(AddInputs(bound, options, module, scope));
  ExternalDataResolver external(std::filesystem::path(path).parent_path().string(), options.allow_links,
                                options.allow_missing_weights);
  RETURN_IF_ERROR(AddInitializers(graph, external, module, scope));
  RETURN_IF_ERROR(NodeImporter(module.graph, options, model.functions()).Import(graph.node(), opsets, scope));
  return AddOutputs(graph, module, scope);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ImportModel(const std::string& path, const ImportOptions& options) {
  ASSIGN_OR_RETURN(onnx::ModelProto model, ReadModel(path));
  auto module = std::make_unique<Module>();
  module->model_name = std::filesystem::path(path).stem().string();
  try {
    RETURN_IF_ERROR(Prefix(path, Build(model, path, options, *module)));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the onnx library refuses it: ", error.what()));
  }
  return module;
}

}  // namespace pipec
