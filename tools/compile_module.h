// From the flags to a finished module.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "compiler/ir/module.h"
#include "tools/compile_flags.h"

namespace pipec {

// Imports the model and lowers it, RunPipeline or one that prints on the way. What runs again for the backward pass is chosen
// at the cut, by bytes counted before memory is laid out: if --recompute is left open and a rank then needs more than its
// limit, what it lacks is left free at the next cut, a few times, and in the end everything runs again. Errors: the last
// ones of Import and `lower`.
absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags,
                                                      absl::FunctionRef<absl::Status(Module&)> lower);
absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags);

}  // namespace pipec
