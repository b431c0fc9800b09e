#include "compiler/emit/emit.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "compiler/emit/check_kernels.h"
#include "compiler/emit/describe_links.h"
#include "compiler/emit/rank_plan.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/new_directory.h"
#include "runtime/base/status.h"
#include "runtime/plan/hash.h"
#include "runtime/plan/load.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "manifest.json";

// Writes files into a directory and keeps the manifest's account of them.
class Files {
 public:
  Files(const std::string& directory, Manifest& manifest) : directory_(directory), manifest_(manifest) {}

  std::string Path(absl::string_view name) const { return absl::StrCat(directory_, "/", name); }

  absl::Status Add(absl::string_view name, absl::string_view bytes) {
    RETURN_IF_ERROR(WriteFileAtomically(Path(name), bytes));
    manifest_.files.push_back({std::string(name), static_cast<int64_t>(bytes.size()), HashBytes(bytes)});
    return absl::OkStatus();
  }

  absl::Status AddWritten(absl::string_view name) {
    ASSIGN_OR_RETURN(ManifestFile file, DescribeFile(Path(name), name));
    manifest_.files.push_back(std::move(file));
    return absl::OkStatus();
  }

 private:
  const std::string directory_;
  Manifest& manifest_;
};

}  // namespace

absl::Status CheckTarget(const std::string& directory) {
  std::error_code code;
  if (directory.empty()) return absl::InvalidArgumentError("-o names no directory");
  if (!fs::exists(fs::symlink_status(directory, code))) return absl::OkStatus();
  if (fs::is_directory(directory, code) && IsPlan(directory)) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "'", directory, "' exists and is not a plan, so it is not replaced; ", "-o names another directory"));
}

absl::Status EmitPlan(const Module& module, const ParameterPlacement& placement, const EmitOptions& options) {
  RETURN_IF_ERROR(CheckTarget(options.directory));
  RETURN_IF_ERROR(CheckKernels(module, options.cluster));
  ASSIGN_OR_RETURN(NewDirectory directory, NewDirectory::Create(options.directory));
  Manifest manifest = MakeManifest(module, placement, options.pipec_version);
  Files files(directory.path(), manifest);
  for (int r = 0; r < module.memory.size(); ++r) {
    const DeviceProfile* device = options.cluster ? &options.cluster->devices[r] : nullptr;
    ASSIGN_OR_RETURN(const plan::RankPlan rank_plan,
                     MakeRankPlan(module, r, placement, options.pipec_version, device));
    RETURN_IF_ERROR(files.Add(RankFileName(r), rank_plan.SerializeAsString()));
  }
  RETURN_IF_ERROR(DescribeLinks(placement, manifest));
  if (!placement.copied.empty()) {
    std::error_code code;
    fs::create_directory(files.Path("parameters"), code);
    if (code)
      return absl::ErrnoToStatus(code.value(), absl::StrCat("cannot make '", files.Path("parameters"), "'"));
    RETURN_IF_ERROR(WriteParameters(placement, files.Path(kParameterFile)));
    RETURN_IF_ERROR(files.AddWritten(kParameterFile));
  }
  for (const PlanFile& file : options.files) RETURN_IF_ERROR(files.Add(file.name, file.bytes));
  RETURN_IF_ERROR(WriteFileAtomically(files.Path(kManifest), ToJson(manifest)));
  return directory.Commit();
}

}  // namespace pipec
