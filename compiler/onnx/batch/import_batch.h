// Which size of the batch a model is imported with, and how often until that is known.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "compiler/ir/module.h"
#include "compiler/onnx/batch/baked_batch.h"
#include "compiler/onnx/import.h"

namespace pipec {

// One import of the model.
using ImportOnce = std::function<absl::StatusOr<std::unique_ptr<Module>>(BakedBatch&)>;

// The module for one microbatch. A model that fits is imported once; one with another batch written in is
// imported with that batch first, to compare. Errors: those of `import`, BakedBatch's.
absl::StatusOr<std::unique_ptr<Module>> ImportMicrobatch(const ImportOptions& options,
                                                         const ImportOnce& import);

}  // namespace pipec
