// Where the initial values of a plan's parameters lie.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/ir/module.h"
#include "runtime/checkpoint/safetensors.h"

namespace pipec {

inline constexpr char kParameterFile[] = "parameters/model.safetensors";
// Parameters of more bytes than this stay in the user's own files.
inline constexpr int64_t kCopyLimit = int64_t{1} << 30;

enum class ParameterMode { kAuto, kCopy, kLink };

struct PlacedParameter {
  const Value* value = nullptr;
  std::string file;    // relative to the plan; absolute if linked
  int64_t offset = 0;  // in `file`, bytes
  // In a safetensors file of all parameters in this order: kParameterFile, a checkpoint, an export.
  int64_t checkpoint_offset = 0;
};

struct ParameterPlacement {
  bool linked = false;
  std::vector<PlacedParameter> parameters;  // in the order of the model's initializers
  absl::flat_hash_map<const Value*, int> index;
  std::vector<SafetensorsTensor> tensors;  // the same, as a safetensors file names them
};

// Depends on the model only, never on its stages. Parameters without any use are left out: they stay where
// the model has them. kAuto copies up to kCopyLimit bytes, and whatever does not lie in files already.
// Errors: FailedPrecondition if a parameter has no data (a model without weights can only be planned), or is
// to be linked and lies in no file; InvalidArgument for a type that safetensors has not.
absl::StatusOr<ParameterPlacement> PlaceParameters(const Module& module,
                                                   ParameterMode mode = ParameterMode::kAuto);

// Writes kParameterFile's contents, tensor by tensor; nothing is read that need not be. Not for linked
// parameters.
absl::Status WriteParameters(const ParameterPlacement& placement, const std::string& path);

}  // namespace pipec
