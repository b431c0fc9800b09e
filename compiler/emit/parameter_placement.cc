#include "compiler/emit/parameter_placement.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/ops/low_rank.h"
#include "runtime/base/file_reader.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

bool LiesInFile(const Value& value) { return value.data.file != nullptr; }

TensorType StoredType(const Value& value) {
  const DType stored = value.data.stored;
  return {stored == DType::kUndefined ? value.type.dtype : stored, value.type.shape};
}

}  // namespace

absl::StatusOr<ParameterPlacement> PlaceParameters(const Module& module, ParameterMode mode) {
  ParameterPlacement placement;
  absl::flat_hash_set<const Value*> added;
  for (const LowRank& row : FindLowRank(module.graph)) added.insert({row.a, row.b});
  std::vector<SafetensorsTensor> all;
  int64_t bytes = 0;
  bool in_files = false;
  for (const Value* value : module.graph.Values()) {
    if (value->kind() != ValueKind::kParameter) continue;
    if (!value->data.bytes && !value->data.file) {
      return absl::FailedPreconditionError(
          absl::StrCat("parameter ", value->name(),
                       " has no data: a model without weights can only be planned (--dry-run)"));
    }
    in_files |= LiesInFile(*value);
    const TensorType type = StoredType(*value);
    bytes += type.bytes();
    placement.parameters.push_back({.value = value, .type = type, .added = added.contains(value)});
    if (!placement.parameters.back().added) all.push_back({value->name(), type});
  }
  if (mode == ParameterMode::kLink && !in_files && !placement.parameters.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("parameter ", placement.parameters[0].value->name(),
                                                      " and all others lie in the model file itself and ",
                                                      "cannot be linked; --parameters=copy copies"));
  }
  const bool link = mode == ParameterMode::kLink || (mode == ParameterMode::kAuto && bytes > kCopyLimit);
  for (PlacedParameter& placed : placement.parameters) {
    placed.linked = link && LiesInFile(*placed.value);
    if (!placed.linked) placement.copied.push_back({placed.value->name(), placed.type});
  }
  ASSIGN_OR_RETURN(const SafetensorsLayout checkpoint, LayOutSafetensors(all));
  ASSIGN_OR_RETURN(const SafetensorsLayout copies, LayOutSafetensors(placement.copied));
  auto copy = copies.offsets.begin(), own = checkpoint.offsets.begin();
  for (PlacedParameter& placed : placement.parameters) {
    if (!placed.added) placed.checkpoint_offset = *own++;
    placed.file = placed.linked ? *placed.value->data.file : kParameterFile;
    placed.offset = placed.linked ? static_cast<int64_t>(placed.value->data.offset) : *copy++;
  }
  return placement;
}

absl::Status WriteParameters(const ParameterPlacement& placement, const std::string& path) {
  FileSequence files;
  ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, placement.copied));
  for (const PlacedParameter& placed : placement.parameters) {
    if (placed.linked) continue;
    const TensorData& data = placed.value->data;
    if (data.bytes) {
      RETURN_IF_ERROR(writer.Append(*data.bytes));
      continue;
    }
    ASSIGN_OR_RETURN(FileReader * file, files.Open(*data.file));
    const absl::Status status =
        file->Read(data.offset, data.length, [&](absl::string_view piece) { return writer.Append(piece); });
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("parameter ", placed.value->name(), ": ", status.message()));
    }
  }
  return writer.Finish();
}

}  // namespace pipec
