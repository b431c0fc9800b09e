// Arrays by name: .npz, .safetensors, a folder of .npy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/data_source.h"

namespace pipec {

absl::StatusOr<std::unique_ptr<DataSource>> OpenArrays(const std::string& path,
                                                       const std::vector<DataInput>& inputs);

}  // namespace pipec
