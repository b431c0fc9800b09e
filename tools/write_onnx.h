// A module as ONNX models in a directory: model.onnx, one file a stage, and the contents that they share.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "compiler/ir/module.h"

namespace pipec {

// Refuses a directory that holds anything but what WriteOnnx writes. For a check before long work.
absl::Status CheckOnnxDirectory(const std::string& directory);

// Writes `directory`/model.onnx, stage_0.onnx, ... (from level staged on) and model.data; replaces what an earlier
// call wrote. Errors are files' and the exporter's.
absl::Status WriteOnnx(const Module& module, const std::string& directory);

}  // namespace pipec
