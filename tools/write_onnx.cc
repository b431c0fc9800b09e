#include "tools/write_onnx.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/export/module.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/file_reader.h"
#include "runtime/base/new_directory.h"
#include "runtime/base/status.h"
#include "runtime/driver/hyperparameters.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

constexpr char kModelFile[] = "model.onnx", kDataFile[] = "model.data", kStagePrefix[] = "stage_";

// What piperun would take without a flag.
std::map<std::string, double> ScalarDefaults(const std::string& optimizer) {
  const Hyperparameters h = WithDefaults({}, optimizer);
  return {{"lr", h.lr.value.value_or(0)},          {"weight_decay", h.weight_decay.value.value_or(0)},
          {"momentum", h.momentum.value_or(0)},    {"beta1", h.beta1.value_or(0)},
          {"beta2", h.beta2.value_or(0)},          {"eps", h.eps.value_or(0)},
          {"loss_scale", StepScalars().loss_scale}};
}

class Writer {
 public:
  explicit Writer(AtomicFile& file) : file_(file) {}

  absl::Status Write(absl::string_view bytes) {
    written_ += bytes.size();
    return file_.Write(bytes);
  }
  absl::Status PadTo(uint64_t offset) {
    static const std::string zeros(1 << 16, '\0');
    while (written_ < offset)
      RETURN_IF_ERROR(
          Write(absl::string_view(zeros).substr(0, std::min<uint64_t>(zeros.size(), offset - written_))));
    return absl::OkStatus();
  }

 private:
  AtomicFile& file_;
  uint64_t written_ = 0;
};

absl::Status WriteData(const ModelData& data, const std::string& path) {
  ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  Writer writer(file);
  FileSequence sources;
  for (const auto& [value, offset] : data.tensors) {
    RETURN_IF_ERROR(writer.PadTo(offset));
    const TensorData& contents = value->data;
    if (contents.bytes) {
      RETURN_IF_ERROR(writer.Write(*contents.bytes));
      continue;
    }
    ASSIGN_OR_RETURN(FileReader * source, sources.Open(*contents.file));
    RETURN_IF_ERROR(source->Read(static_cast<int64_t>(contents.offset), static_cast<int64_t>(contents.length),
                                 [&](absl::string_view piece) { return writer.Write(piece); }));
  }
  RETURN_IF_ERROR(writer.PadTo(data.bytes));
  return file.Commit();
}

}  // namespace

absl::Status CheckOnnxDirectory(const std::string& directory) {
  std::error_code error;
  if (!fs::exists(directory, error)) return absl::OkStatus();
  if (!fs::is_directory(directory, error)) {
    return absl::FailedPreconditionError(absl::StrCat("--emit-onnx: '", directory, "' is not a directory"));
  }
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (name == kModelFile || name == kDataFile) continue;
    if (absl::StartsWith(name, kStagePrefix) && absl::EndsWith(name, ".onnx")) continue;
    return absl::FailedPreconditionError(absl::StrCat("--emit-onnx: '", directory, "' holds '", name,
                                                      "', which is no emitted model; name a new directory"));
  }
  return absl::OkStatus();
}

absl::Status WriteOnnx(const Module& module, const std::string& directory) {
  RETURN_IF_ERROR(CheckOnnxDirectory(directory));
  ASSIGN_OR_RETURN(NewDirectory fresh, NewDirectory::Create(directory));
  const ModelData data = PlaceModelData(module, kDataFile);
  const ExportOptions options{ScalarDefaults(module.training.optimizer), &data};
  ASSIGN_OR_RETURN(std::string model, ExportModule(module, options));
  RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(fresh.path(), "/", kModelFile), model));
  for (int stage = 0; stage < static_cast<int>(module.stages.size()); ++stage) {
    ASSIGN_OR_RETURN(model, ExportStage(module, stage, options));
    RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(fresh.path(), "/", kStagePrefix, stage, ".onnx"), model));
  }
  if (data.bytes > 0) RETURN_IF_ERROR(WriteData(data, absl::StrCat(fresh.path(), "/", kDataFile)));
  return fresh.Commit();
}

}  // namespace pipec
