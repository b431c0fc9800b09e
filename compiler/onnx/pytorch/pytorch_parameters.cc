#include "compiler/onnx/pytorch/pytorch_parameters.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/first_names.h"
#include "compiler/onnx/pytorch/fx_metadata.h"
#include "compiler/onnx/pytorch/parameter_editor.h"
#include "compiler/onnx/pytorch/pytorch_exporters.h"
#include "compiler/onnx/read/tensor_data.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr char kProducer[] = "pytorch";
constexpr char kSignature[] = "pkg.torch.export.ExportedProgram.graph_signature";
// As many bytes as are copied into a plan.
constexpr int64_t kMaxBytes = int64_t{1} << 30;

bool FitsInMemory(const onnx::GraphProto& graph) {
  int64_t bytes = 0;
  for (const auto& proto : graph.initializer()) {
    const absl::StatusOr<TensorType> type = TypeOf(proto);
    if (type.ok()) bytes += type->bytes();
    if (bytes > kMaxBytes) return false;
  }
  return true;
}

// What is still called as the exporter called it.
void NoteUnnamed(const onnx::GraphProto& graph, PyTorchParameters& result) {
  std::vector<std::string> names;
  for (const auto& proto : graph.initializer()) {
    const absl::StatusOr<TensorType> type = TypeOf(proto);
    const bool may_learn = type.ok() && IsFloat(type->dtype) && !type->shape.empty();
    if (may_learn && absl::StartsWith(proto.name(), "onnx::")) names.push_back(proto.name());
  }
  if (names.empty()) return;
  result.notes.push_back(absl::StrCat(
      names.size(), " parameter(s) have no name of PyTorch's, which folded them: ", FirstNames(names),
      "; torch.onnx.export(training=TrainingMode.TRAINING, do_constant_folding=False) folds none"));
}

// Names that the TorchScript exporter makes for constants and results, not those of a module's attributes.
bool IsMade(absl::string_view name) {
  if (absl::StartsWith(name, "onnx::") || absl::StartsWith(name, "/")) return true;
  if (absl::StartsWith(name, "Constant")) return true;
  return !absl::StrContains(name, '.') && !name.empty() && absl::ascii_isdigit(name[0]);
}

// Of the dynamo exporter, which calls all its nodes so; a tool may have dropped its metadata.
bool IsDynamo(const onnx::GraphProto& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(),
                     [](const onnx::NodeProto& node) { return absl::StartsWith(node.name(), "node_"); });
}

// Float initializers of shape [] that the signature calls parameters, or without one an attribute's name does.
absl::flat_hash_set<std::string> LearnedScalars(const onnx::GraphProto& graph, const std::string* signature) {
  absl::flat_hash_set<std::string> parameters, scalars;
  if (signature) {
    for (const auto& [name, entry] : ParseSignature(*signature)) {
      if (entry.learns) parameters.insert(entry.name);
    }
  }
  const bool named = !signature && !IsDynamo(graph);
  for (const auto& proto : graph.initializer()) {
    const absl::StatusOr<TensorType> type = TypeOf(proto);
    const bool scalar = type.ok() && IsFloat(type->dtype) && type->shape.empty();
    const bool learns = named ? !IsMade(proto.name()) : parameters.contains(proto.name());
    if (scalar && learns) scalars.insert(proto.name());
  }
  return scalars;
}

}  // namespace

void AddBatchCounter(const std::string& module, ParameterEditor& editor, PyTorchParameters& result) {
  const std::string name = absl::StrCat(module, ".num_batches_tracked");
  if (editor.Find(name)) return;
  editor.Add(name, onnx::TensorProto::INT64, {}, std::string(sizeof(int64_t), '\0'));
  result.kept.insert(name);
}

absl::StatusOr<PyTorchParameters> RestorePyTorchParameters(onnx::ModelProto& model,
                                                           ExternalDataResolver& external) {
  PyTorchParameters result;
  onnx::GraphProto& graph = *model.mutable_graph();
  if (model.producer_name() != kProducer) return result;
  const std::string* signature = nullptr;
  for (const auto& entry : graph.metadata_props()) {
    if (entry.key() == kSignature) signature = &entry.value();
  }
  if (!FitsInMemory(graph)) {
    result.scalars = LearnedScalars(graph, signature);
    result.notes.push_back(
        "parameters keep the names and layouts of the ONNX model, not PyTorch's: above 1 GB they stay in its "
        "files");
    return result;
  }
  ParameterEditor editor(graph, external);
  const absl::Status status = signature ? RestoreFromMetadata(graph, *signature, editor, result)
                                        : RestoreFromScopes(graph, editor, result);
  editor.Finish();
  result.scalars = LearnedScalars(graph, signature);
  // Contents that are not there are no reason to refuse a model that is only planned.
  if (!absl::IsNotFound(status)) RETURN_IF_ERROR(status);
  if (!signature) NoteUnnamed(graph, result);
  return result;
}

}  // namespace pipec
