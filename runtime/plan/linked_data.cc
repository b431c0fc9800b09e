#include "runtime/plan/linked_data.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/file_reader.h"
#include "runtime/base/status.h"
#include "runtime/plan/hash.h"

namespace pipec {
namespace {

class LinkedFiles {
 public:
  explicit LinkedFiles(const Manifest& manifest) {
    for (const ManifestLink& link : manifest.links) links_[link.path] = &link;
  }

  absl::Status Check(const ManifestParameter& parameter, bool take_hash) {
    ASSIGN_OR_RETURN(FileReader * file, files_.Open(parameter.file));
    ASSIGN_OR_RETURN(const bool changed, Changed(*file));
    if (!take_hash && !changed) return absl::OkStatus();
    const int64_t end = parameter.offset + parameter.type.bytes();
    const auto differs = [&](absl::string_view how) {
      return absl::InvalidArgumentError(absl::StrCat("parameter '", parameter.name, "': '", parameter.file,
                                                     "' ", how, " since pipec made the plan (bytes ",
                                                     parameter.offset, " to ", end,
                                                     " are others); compile the model again"));
    };
    if (end > file->bytes()) return differs(absl::StrCat("has shrunk to ", file->bytes(), " bytes"));
    ASSIGN_OR_RETURN(const std::string hash, HashSlice(*file, parameter.offset, parameter.type.bytes()));
    return hash == parameter.hash ? absl::OkStatus() : differs("has changed");
  }

 private:
  absl::StatusOr<bool> Changed(const FileReader& file) const {
    const auto link = links_.find(file.path());
    if (link == links_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the manifest does not list the linked file '", file.path(), "'"));
    }
    return file.bytes() != link->second->bytes || file.modified_ns() != link->second->modified_ns;
  }

  std::map<std::string, const ManifestLink*> links_;
  FileSequence files_;
};

}  // namespace

absl::Status CheckLinkedData(const plan::RankPlan& rank_plan, const Manifest& manifest) {
  std::map<absl::string_view, const ManifestParameter*> rows;
  for (const ManifestParameter& row : manifest.parameters) rows[row.name] = &row;
  LinkedFiles files(manifest);
  for (const plan::Parameter& parameter : rank_plan.parameters()) {
    if (parameter.file().empty() || parameter.file().front() != '/') continue;
    const auto it = rows.find(parameter.name());
    if (it == rows.end() || it->second->file != parameter.file() ||
        it->second->offset != static_cast<int64_t>(parameter.offset()) ||
        it->second->type.bytes() != static_cast<int64_t>(parameter.length())) {
      return absl::InvalidArgumentError(absl::StrCat("parameter '", parameter.name(), "' is linked into '",
                                                     parameter.file(), "' at ", parameter.offset(),
                                                     ", the manifest says otherwise"));
    }
    RETURN_IF_ERROR(files.Check(*it->second, /*take_hash=*/false));
  }
  return absl::OkStatus();
}

absl::Status CheckLinkedData(const Manifest& manifest) {
  LinkedFiles files(manifest);
  for (const ManifestParameter& parameter : manifest.parameters) {
    if (parameter.linked()) RETURN_IF_ERROR(files.Check(parameter, /*take_hash=*/true));
  }
  return absl::OkStatus();
}

}  // namespace pipec
