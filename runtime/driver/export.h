// --export: the model with its trained parameters.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/driver/session.h"

namespace pipec {

// FailedPrecondition if the directory exists and is neither empty nor an earlier export: asked before
// training, so that no training is lost to it.
absl::Status CheckExportDirectory(const std::string& directory);

// Writes DIR/model.onnx (the plan's export.onnx) and DIR/model.safetensors: all parameters in the model's
// order and types, those no rank holds as the plan has them. The directory appears whole or not at all.
absl::Status ExportModel(Session& session, const std::string& directory);

}  // namespace pipec
