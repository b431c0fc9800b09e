// Where the initial values of a plan's parameters lie.
#pragma once

#include <string>
#include <vector>

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
  TensorType type;      // the model's own: that of the bytes in `file`, in a checkpoint and in an export
  bool linked = false;  // stays in the user's own file
  std::string file;     // relative to the plan; absolute if linked
  int64_t offset = 0;   // in `file`, bytes
  // In a safetensors file of all the model's parameters in this order, as an export is.
  int64_t checkpoint_offset = 0;
  bool added = false;  // by pipec (--lora): the model has it not, and an export neither
};

struct ParameterPlacement {
  std::vector<PlacedParameter> parameters;  // in the order of the model's initializers
  std::vector<SafetensorsTensor> copied;    // contents of kParameterFile: those that are not linked
};

// Depends on the model only, never on its stages. Parameters without any use are left out: they stay where
// the model has them. kAuto copies up to kCopyLimit bytes. Where parameters are linked, those that lie in the
// model file itself (exporters keep small ones there) are copied all the same. Errors: FailedPrecondition if
// a parameter has no data (a model without weights can only be planned), or if kLink finds none that lies in
// a file of its own; InvalidArgument for a type that safetensors has not.
absl::StatusOr<ParameterPlacement> PlaceParameters(const Module& module,
                                                   ParameterMode mode = ParameterMode::kAuto);

// Writes kParameterFile: what is copied, read through a small buffer.
absl::Status WriteParameters(const ParameterPlacement& placement, const std::string& path);

}  // namespace pipec
