#include "compiler/emit/parameter_placement.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// The files parameters come from, each mapped once.
class Sources {
 public:
  absl::StatusOr<absl::string_view> Read(const Value& value) {
    const TensorData& data = value.data;
    if (data.bytes) return absl::string_view(*data.bytes);
    auto it = files_.find(*data.file);
    if (it == files_.end()) {
      ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(*data.file));
      it = files_.emplace(*data.file, std::move(file)).first;
    }
    const absl::string_view bytes = it->second.bytes();
    if (data.offset > bytes.size() || data.length > bytes.size() - data.offset) {
      return absl::InvalidArgumentError(absl::StrCat("parameter ", value.name(), " should be ", data.length,
                                                     " bytes at ", data.offset, " of '", *data.file,
                                                     "', which has ", bytes.size()));
    }
    return bytes.substr(data.offset, data.length);
  }

 private:
  absl::flat_hash_map<std::string, MappedFile> files_;
};

}  // namespace

absl::StatusOr<ParameterPlacement> PlaceParameters(const Module& module, ParameterMode mode) {
  ParameterPlacement placement;
  int64_t bytes = 0;
  const Value* in_memory = nullptr;
  for (const Value* value : module.graph.Values()) {
    if (value->kind() != ValueKind::kParameter) continue;
    if (!value->data.bytes && !value->data.file) {
      return absl::FailedPreconditionError(
          absl::StrCat("parameter ", value->name(),
                       " has no data: a model without weights can only be planned (--dry-run)"));
    }
    if (value->data.bytes) in_memory = value;
    bytes += value->type.bytes();
    placement.index[value] = static_cast<int>(placement.parameters.size());
    placement.parameters.push_back({value});
    placement.tensors.push_back({value->name(), value->type});
  }
  if (mode == ParameterMode::kLink && in_memory) {
    return absl::FailedPreconditionError(absl::StrCat("parameter ", in_memory->name(),
                                                      " lies in the model file itself and cannot be linked; ",
                                                      "--parameters=copy copies"));
  }
  placement.linked =
      mode == ParameterMode::kLink || (mode == ParameterMode::kAuto && bytes > kCopyLimit && !in_memory);
  ASSIGN_OR_RETURN(const SafetensorsLayout layout, LayOutSafetensors(placement.tensors));
  for (int k = 0; k < placement.parameters.size(); ++k) {
    PlacedParameter& placed = placement.parameters[k];
    placed.checkpoint_offset = layout.offsets[k];
    placed.file = placement.linked ? *placed.value->data.file : kParameterFile;
    placed.offset = placement.linked ? static_cast<int64_t>(placed.value->data.offset) : layout.offsets[k];
  }
  return placement;
}

absl::Status WriteParameters(const ParameterPlacement& placement, const std::string& path) {
  Sources sources;
  ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, placement.tensors));
  for (const PlacedParameter& placed : placement.parameters) {
    ASSIGN_OR_RETURN(const absl::string_view bytes, sources.Read(*placed.value));
    RETURN_IF_ERROR(writer.Append(bytes));
  }
  return writer.Finish();
}

}  // namespace pipec
