#include "runtime/driver/export.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/file_reader.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/new_directory.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/executor/instruction.h"
#include "runtime/plan/load.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

struct Owner {
  int rank;
  const plan::Parameter* parameter;
};

std::map<std::string, Owner> OwnersOf(Session& session) {
  std::map<std::string, Owner> owners;
  for (int rank = 0; rank < session.manifest().ranks; ++rank) {
    for (const plan::Parameter& parameter : session.executor(rank).rank_plan().parameters()) {
      if (parameter.first_owner()) owners[parameter.name()] = {rank, &parameter};
    }
  }
  return owners;
}

absl::Status AppendTrained(Session& session, const Owner& owner, const ManifestParameter& wanted,
                           SafetensorsWriter* writer) {
  Executor& executor = session.executor(owner.rank);
  const TensorType type = TypeOf(executor.rank_plan().tensors(owner.parameter->tensor()));
  const DType stored = static_cast<DType>(owner.parameter->dtype());
  if (type.shape != wanted.type.shape ||
      (stored == DType::kUndefined ? type.dtype : stored) != wanted.type.dtype) {
    return absl::InternalError(absl::StrCat("parameter '", wanted.name, "' is ", ToString(type), " on rank ",
                                            owner.rank, ", the model has ", ToString(wanted.type)));
  }
  const auto read = [&](auto& elements) {
    auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(elements.data()), type.bytes());
    return session.group().RunOn(
        owner.rank, [&](int) { return executor.Read(static_cast<int>(owner.parameter->tensor()), bytes); });
  };
  if (stored != DType::kUndefined) {
    std::vector<float> masters(type.elements());
    RETURN_IF_ERROR(read(masters));
    return writer->Append(RoundToSmallFloats(stored, masters));
  }
  std::string bytes(type.bytes(), '\0');
  RETURN_IF_ERROR(read(bytes));
  return writer->Append(bytes);
}

absl::Status AppendFromPlan(Session& session, const ManifestParameter& wanted, SafetensorsWriter* writer) {
  ASSIGN_OR_RETURN(FileReader file, FileReader::Open(PlanPath(session.directory(), wanted.file)));
  const absl::Status status = file.Read(wanted.offset, wanted.type.bytes(),
                                        [&](absl::string_view piece) { return writer->Append(piece); });
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("parameter '", wanted.name, "': ", status.message()));
}

// The float32 contents of a parameter that a rank holds.
absl::StatusOr<std::vector<float>> ReadMasters(Session& session, const Owner& owner) {
  const TensorType type = TypeOf(session.executor(owner.rank).rank_plan().tensors(owner.parameter->tensor()));
  if (type.dtype != DType::kFloat32) {
    return absl::UnimplementedError(absl::StrCat("parameter '", owner.parameter->name(), "' is ",
                                                 ToString(type), ": --lora is exported for float32 only"));
  }
  std::vector<float> elements(type.elements());
  auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(elements.data()), type.bytes());
  RETURN_IF_ERROR(session.group().RunOn(owner.rank, [&](int) {
    return session.executor(owner.rank).Read(static_cast<int>(owner.parameter->tensor()), bytes);
  }));
  return elements;
}

// weight + a b, or its transpose.
absl::Status AppendAdapted(Session& session, const std::map<std::string, Owner>& owners,
                           const ManifestLowRank& row, const ManifestParameter& wanted,
                           SafetensorsWriter* writer) {
  for (const std::string& name : {row.weight, row.a, row.b}) {
    if (owners.find(name) == owners.end())
      return absl::InternalError(absl::StrCat("no rank holds parameter '", name, "'"));
  }
  const Owner &a_owner = owners.at(row.a), &b_owner = owners.at(row.b);
  ASSIGN_OR_RETURN(std::vector<float> weight, ReadMasters(session, owners.at(row.weight)));
  ASSIGN_OR_RETURN(const std::vector<float> a, ReadMasters(session, a_owner));
  ASSIGN_OR_RETURN(const std::vector<float> b, ReadMasters(session, b_owner));
  const int64_t in = wanted.type.shape[row.transposed ? 1 : 0],
                out = wanted.type.shape[row.transposed ? 0 : 1],
                rank = static_cast<int64_t>(a.size()) / std::max<int64_t>(in, 1);
  for (int64_t i = 0; i < in; ++i) {
    for (int64_t o = 0; o < out; ++o) {
      double sum = 0;
      for (int64_t k = 0; k < rank; ++k) sum += static_cast<double>(a[i * rank + k]) * b[k * out + o];
      weight[row.transposed ? o * in + i : i * out + o] += static_cast<float>(sum);
    }
  }
  if (wanted.type.dtype != DType::kFloat32)
    return writer->Append(RoundToSmallFloats(wanted.type.dtype, weight));
  return writer->Append(
      absl::string_view(reinterpret_cast<const char*>(weight.data()), weight.size() * sizeof(float)));
}

absl::Status WriteFiles(Session& session, const std::string& directory) {
  ASSIGN_OR_RETURN(const MappedFile model,
                   MappedFile::Open(absl::StrCat(session.directory(), "/export.onnx")));
  RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(directory, "/model.onnx"), model.bytes()));
  const Manifest& manifest = session.manifest();
  const auto is_factor = [&](const ManifestParameter& parameter) {
    return std::any_of(manifest.low_rank.begin(), manifest.low_rank.end(), [&](const ManifestLowRank& row) {
      return row.a == parameter.name || row.b == parameter.name;
    });
  };
  std::vector<SafetensorsTensor> tensors;
  for (const ManifestParameter& parameter : manifest.parameters) {
    if (!is_factor(parameter)) tensors.push_back({parameter.name, parameter.type});
  }
  ASSIGN_OR_RETURN(SafetensorsWriter writer,
                   SafetensorsWriter::Create(absl::StrCat(directory, "/model.safetensors"), tensors));
  const std::map<std::string, Owner> owners = OwnersOf(session);
  for (const ManifestParameter& parameter : manifest.parameters) {
    if (is_factor(parameter)) continue;
    const std::string& name = parameter.tied_to.empty() ? parameter.name : parameter.tied_to;
    const auto adapted = std::find_if(manifest.low_rank.begin(), manifest.low_rank.end(),
                                      [&](const ManifestLowRank& row) { return row.weight == name; });
    if (adapted != manifest.low_rank.end()) {
      RETURN_IF_ERROR(AppendAdapted(session, owners, *adapted, parameter, &writer));
      continue;
    }
    auto owner = owners.find(name);
    RETURN_IF_ERROR(owner != owners.end() ? AppendTrained(session, owner->second, parameter, &writer)
                                          : AppendFromPlan(session, parameter, &writer));
  }
  return writer.Finish();
}

}  // namespace

absl::Status CheckExportDirectory(const std::string& directory) {
  std::error_code error;
  if (!fs::exists(directory, error)) return absl::OkStatus();
  if (!fs::is_directory(directory, error)) {
    return absl::FailedPreconditionError(absl::StrCat("--export: '", directory, "' is not a directory"));
  }
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (name != "model.onnx" && name != "model.safetensors") {
      return absl::FailedPreconditionError(absl::StrCat("--export: '", directory, "' holds '", name,
                                                        "', which is no export; name a new directory"));
    }
  }
  return absl::OkStatus();
}

absl::Status ExportModel(Session& session, const std::string& directory) {
  RETURN_IF_ERROR(CheckExportDirectory(directory));
  ASSIGN_OR_RETURN(NewDirectory fresh, NewDirectory::Create(directory));
  RETURN_IF_ERROR(WriteFiles(session, fresh.path()));
  return fresh.Commit();
}

}  // namespace pipec
