#include "compiler/emit/describe_links.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/file_reader.h"
#include "runtime/base/status.h"
#include "runtime/plan/hash.h"

namespace pipec {

absl::Status DescribeLinks(const ParameterPlacement& placement, Manifest& manifest) {
  FileSequence files;
  absl::flat_hash_set<absl::string_view> seen;
  for (int k = 0; k < placement.parameters.size(); ++k) {
    const PlacedParameter& placed = placement.parameters[k];
    if (!placed.linked) continue;
    ASSIGN_OR_RETURN(FileReader * file, files.Open(placed.file));
    // Before its bytes are read: if it changes meanwhile, its time of change tells.
    if (seen.insert(placed.file).second) {
      manifest.links.push_back({placed.file, file->bytes(), file->modified_ns()});
    }
    absl::StatusOr<std::string> hash = HashSlice(*file, placed.offset, placed.type.bytes());
    if (!hash.ok()) {
      return absl::Status(hash.status().code(),
                          absl::StrCat("parameter ", placed.value->name(), ": ", hash.status().message()));
    }
    manifest.parameters[k].hash = *std::move(hash);
  }
  return absl::OkStatus();
}

}  // namespace pipec
