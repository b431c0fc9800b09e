#include "compiler/onnx/export.h"

#include <filesystem>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/export/values.h"
#include "compiler/onnx/pytorch/pytorch_parameters.h"
#include "compiler/onnx/read/all_initializers.h"
#include "compiler/onnx/read/embed_external_data.h"
#include "compiler/onnx/read/external_data.h"
#include "compiler/onnx/read/read_model.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::StatusOr<std::string> Serialise(const onnx::ModelProto& model) {
  std::string bytes;
  if (!model.SerializeToString(&bytes)) {
    return absl::ResourceExhaustedError("the model is above protobuf's 2 GB without its external data");
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WithExternalData(
    const std::string& path, absl::Span<const std::vector<ExternalTensor>> places) {
  ASSIGN_OR_RETURN(onnx::ModelProto model, ReadModel(path));
  // As import saw it. That links are what the user allows was checked there.
  ExternalDataResolver external(std::filesystem::path(path).parent_path().string(), /*allow_links=*/true,
                                /*allow_missing=*/true);
  RETURN_IF_ERROR(RestorePyTorchParameters(model, external).status());
  ExternalDataEmbedder embedder(external);
  std::vector<std::string> results;
  for (const std::vector<ExternalTensor>& tensors : places) {
    absl::flat_hash_map<absl::string_view, const ExternalTensor*> wanted;
    for (const ExternalTensor& tensor : tensors) wanted[tensor.name] = &tensor;
    absl::Status embedded;
    ForEachInitializer(model, [&](onnx::TensorProto& proto) {
      auto it = wanted.find(proto.name());
      if (it == wanted.end()) {
        if (embedded.ok()) embedded = embedder.Embed(proto);
        return;
      }
      SetExternal(proto, it->second->location, it->second->offset, it->second->length);
      wanted.erase(it);
    });
    RETURN_IF_ERROR(embedded);
    if (!wanted.empty()) {
      return absl::NotFoundError(absl::StrCat(path, ": has no initializer '", wanted.begin()->first, "'"));
    }
    ASSIGN_OR_RETURN(results.emplace_back(), Serialise(model));
  }
  return results;
}

}  // namespace pipec
