#include "runtime/plan/load.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status.h"
#include "runtime/plan/hash.h"
#include "runtime/plan/linked_data.h"
#include "runtime/plan/verify.h"

namespace pipec {
namespace {

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("'", path, "': ", status.message()));
}

absl::Status CompareWithManifest(const plan::RankPlan& rank_plan, const Manifest& manifest, int rank) {
  auto differ = [](absl::string_view what, int64_t got, int64_t wanted) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is ", got, ", the manifest says ", wanted));
  };
  if (rank_plan.rank() != rank) return differ("rank", rank_plan.rank(), rank);
  if (rank_plan.ranks() != manifest.ranks) return differ("ranks", rank_plan.ranks(), manifest.ranks);
  if (rank_plan.virtual_stages() != manifest.virtual_stages) {
    return differ("virtual_stages", rank_plan.virtual_stages(), manifest.virtual_stages);
  }
  if (rank_plan.microbatches() != manifest.microbatches) {
    return differ("microbatches", rank_plan.microbatches(), manifest.microbatches);
  }
  if (rank_plan.microbatch_size() != manifest.microbatch_size) {
    return differ("microbatch_size", rank_plan.microbatch_size(), manifest.microbatch_size);
  }
  if (rank_plan.replicas() != manifest.replicas)
    return differ("replicas", rank_plan.replicas(), manifest.replicas);
  if (rank_plan.training() != (manifest.mode == "train")) {
    return differ("training", rank_plan.training(), manifest.mode == "train");
  }
  auto check_ports = [&](const google::protobuf::RepeatedPtrField<plan::Port>& ports,
                         const std::vector<ManifestPort>& known, absl::string_view what) -> absl::Status {
    for (const plan::Port& port : ports) {
      const ManifestPort* match = nullptr;
      for (const ManifestPort& candidate : known) {
        if (candidate.name == port.name()) match = &candidate;
      }
      if (match == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(what, " '", port.name(), "' is not in the manifest"));
      }
      const plan::Tensor& tensor = rank_plan.tensors(port.tensor());
      const TensorType type{static_cast<DType>(tensor.dtype()),
                            Shape(tensor.shape().begin(), tensor.shape().end())};
      if (!(type == match->type)) {
        return absl::InvalidArgumentError(absl::StrCat(what, " '", port.name(), "' is ", ToString(type),
                                                       ", the manifest says ", ToString(match->type)));
      }
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(check_ports(rank_plan.inputs(), manifest.inputs, "input"));
  return check_ports(rank_plan.outputs(), manifest.outputs, "output");
}

}  // namespace

std::string PlanPath(const std::string& directory, const std::string& file) {
  return absl::StartsWith(file, "/") ? file : absl::StrCat(directory, "/", file);
}

absl::StatusOr<Manifest> LoadManifest(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/manifest.json");
  absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (absl::IsNotFound(file.status())) {
    return absl::NotFoundError(
        absl::StrCat("'", directory, "' is not a plan: it has no manifest.json; pipec makes plans"));
  }
  if (!file.ok()) return file.status();
  absl::StatusOr<Manifest> manifest = ParseManifest(file->bytes());
  if (!manifest.ok()) return InFile(path, manifest.status());
  return manifest;
}

bool IsPlan(const std::string& directory) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(absl::StrCat(directory, "/manifest.json"));
  return file.ok() && IsManifestOfAnyVersion(file->bytes());
}

absl::StatusOr<plan::RankPlan> LoadRankPlan(const std::string& directory, const Manifest& manifest,
                                            int rank) {
  const std::string name = RankFileName(rank);
  const std::string path = absl::StrCat(directory, "/", name);
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  const ManifestFile* row = nullptr;
  for (const ManifestFile& candidate : manifest.files) {
    if (candidate.path == name) row = &candidate;
  }
  if (row == nullptr) return InFile(path, absl::InvalidArgumentError("the manifest does not list this file"));
  if (row->bytes != static_cast<int64_t>(file.bytes().size()) || row->hash != HashBytes(file.bytes())) {
    return InFile(path,
                  absl::InvalidArgumentError("not the file that pipec wrote (size or hash differ from the "
                                             "manifest's); compile the model again"));
  }
  plan::RankPlan rank_plan;
  if (file.bytes().size() > std::numeric_limits<int>::max() ||
      !rank_plan.ParseFromArray(file.bytes().data(), static_cast<int>(file.bytes().size()))) {
    return InFile(path, absl::InvalidArgumentError("not a rank's plan: it does not parse"));
  }
  absl::Status status = VerifyRankPlan(rank_plan);
  if (status.ok()) status = CompareWithManifest(rank_plan, manifest, rank);
  if (!status.ok()) return InFile(path, status);
  RETURN_IF_ERROR(VerifyParameterFiles(rank_plan, directory));
  RETURN_IF_ERROR(CheckLinkedData(rank_plan, manifest));
  return rank_plan;
}

}  // namespace pipec
