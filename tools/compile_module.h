// From the flags to a finished module.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "compiler/ir/module.h"
#include "tools/compile_flags.h"

namespace pipec {

// Imports the model and lowers it, RunPipeline or one that prints on the way. Which stages recompute is chosen before memory
// is laid out, by an estimate: where that was too low, a second try recomputes all of them.
absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags,
                                                      absl::FunctionRef<absl::Status(Module&)> lower);
absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags);

}  // namespace pipec
