// Tensors whose contents lie in a file beside the model (TensorProto.external_data). Model files come from
// anywhere, so a reference is believed only after it was checked: the file is inside the model's folder and
// the slice is inside the file. Whoever can change that folder while pipec runs is trusted.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/onnx/read/tensor_data.h"

namespace pipec {

class ExternalDataResolver {
 public:
  // `folder`: where the model lies. Links (symbolic, or files with several names) are refused unless
  // `allow_links`; then they may lead anywhere, to regular files of the folder's own owner. A missing file is
  // accepted if `allow_missing`: the tensor then has a type but no data.
  ExternalDataResolver(std::string folder, bool allow_links, bool allow_missing)
      : folder_(std::move(folder)), allow_links_(allow_links), allow_missing_(allow_missing) {}

  // Type and reference; nothing is read. Elements of 4 and 2 bits are packed in the file (tiny_types.h).
  // InvalidArgument or NotFound say what is wrong, without the tensor's name.
  absl::StatusOr<Tensor> Resolve(const onnx::TensorProto& proto);

 private:
  struct File {
    absl::Status status;                      // of the checks on the file itself
    std::shared_ptr<const std::string> path;  // absolute, without links; null if missing
    uint64_t size = 0;
  };
  const File& Open(const std::string& location);
  absl::Status Check(const std::string& location, File& file) const;

  std::string folder_;
  bool allow_links_;
  bool allow_missing_;
  absl::flat_hash_map<std::string, File> files_;  // thousands of tensors share a file
};

}  // namespace pipec
