#include "compiler/onnx/pytorch_parameters.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/parameter_editor.h"
#include "compiler/onnx/pytorch_exporters.h"
#include "compiler/onnx/tensor_data.h"
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
  const size_t count = names.size();
  if (count > 4) names.resize(4);
  result.notes.push_back(absl::StrCat(
      count, " parameter(s) have no name of PyTorch's, which folded them: ", absl::StrJoin(names, ", "),
      count > 4 ? ", ..." : "",
      "; torch.onnx.export(training=TrainingMode.TRAINING, do_constant_folding=False) folds none"));
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
  if (!FitsInMemory(graph)) {
    result.notes.push_back(
        "parameters keep the names and layouts of the ONNX model, not PyTorch's: above 1 GB they stay in its "
        "files");
    return result;
  }
  const std::string* signature = nullptr;
  for (const auto& entry : graph.metadata_props()) {
    if (entry.key() == kSignature) signature = &entry.value();
  }
  ParameterEditor editor(graph, external);
  const absl::Status status = signature ? RestoreFromMetadata(graph, *signature, editor, result)
                                        : RestoreFromScopes(graph, editor, result);
  editor.Finish();
  // Contents that are not there are no reason to refuse a model that is only planned.
  if (!absl::IsNotFound(status)) RETURN_IF_ERROR(status);
  if (!signature) NoteUnnamed(graph, result);
  return result;
}

}  // namespace pipec
