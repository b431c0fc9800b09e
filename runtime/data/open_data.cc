// OpenData (data_source.h).
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/data/array_data.h"
#include "runtime/data/data_source.h"
#include "runtime/data/synthetic_data.h"
#include "runtime/data/token_data.h"

namespace pipec {

absl::StatusOr<std::unique_ptr<DataSource>> OpenData(const std::string& path,
                                                     const std::vector<DataInput>& inputs,
                                                     const DataOptions& options) {
  if (path == "synthetic") return MakeSyntheticData(inputs, options.synthetic_samples, options.seed);
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return absl::NotFoundError(absl::StrCat("no data at '", path, "'"));
  if (absl::EndsWith(path, ".bin")) return OpenTokens(path, inputs, options.tokens);
  if (std::filesystem::is_directory(path, error) || absl::EndsWith(path, ".npz") ||
      absl::EndsWith(path, ".safetensors")) {
    return OpenArrays(path, inputs);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("data '", path,
                   "' is neither .npz, .safetensors, .bin, a folder of .npy files nor the word synthetic"));
}

}  // namespace pipec
