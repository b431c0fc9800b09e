#include "runtime/plan/check.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/linked_data.h"
#include "runtime/plan/load.h"
#include "runtime/plan/verify.h"

namespace pipec {

absl::Status CheckPlan(const std::string& directory) {
  ASSIGN_OR_RETURN(const Manifest manifest, LoadManifest(directory));
  for (const ManifestFile& row : manifest.files) {
    const std::string path = PlanPath(directory, row.path);
    ASSIGN_OR_RETURN(const ManifestFile found, DescribeFile(path, row.path));
    if (found.bytes != row.bytes || found.hash != row.hash) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", path, "': not the file that pipec wrote (size or hash differ from the manifest's)"));
    }
  }
  RETURN_IF_ERROR(CheckLinkedData(manifest));
  std::vector<plan::RankPlan> rank_plans;
  std::vector<const plan::RankPlan*> pointers;
  for (int rank = 0; rank < manifest.ranks; ++rank) {
    ASSIGN_OR_RETURN(plan::RankPlan rank_plan, LoadRankPlan(directory, manifest, rank));
    rank_plans.push_back(std::move(rank_plan));
  }
  for (const plan::RankPlan& rank_plan : rank_plans) pointers.push_back(&rank_plan);
  absl::Status status = VerifyPlan(pointers);
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat("'", directory, "': ", status.message()));
  return status;
}

}  // namespace pipec
