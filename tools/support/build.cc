#include "tools/support/build.h"

#include "absl/strings/str_cat.h"

namespace pipec {

std::string MissingInBuild() {
  const auto found = [](bool is_there) { return is_there ? "found" : "missing"; };
  std::string text;
  if (!PIPEC_CUDA) {
    absl::StrAppend(&text, "not in this build: device cuda, transport nccl (preset cuda has them; CUDA toolkit ",
                    found(PIPEC_CUDA_FOUND), ", NCCL ", found(PIPEC_NCCL_FOUND), "); ");
  }
  return absl::StrCat(text, "in no version yet: transport mpi");
}

}  // namespace pipec
