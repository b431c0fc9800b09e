// From the flags to a finished module.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/module.h"
#include "tools/compile_flags.h"

namespace pipec {

// Runs these passes, or the pipeline if none are named.
using LowerFunction = absl::FunctionRef<absl::Status(Module& module, absl::Span<const std::string> passes)>;

// Imports the model and lowers it: first as fast as it goes, whatever memory that takes. If it does not fit, plans
// of less and less memory are made, and the fastest that fits is returned. Which plans these are does not depend on
// the limit: so more memory never makes a plan slower than another of them, and what one limit allows a larger one
// does. With thousands of nodes only those are made that aim at or below the limit, up to the first that fits, and
// one that fills what that leaves free. All of them with drafts of memory; plan-memory runs once more on the one
// that is returned. `flags`: as given, not yet imported. Errors: those of Import and `lower`; ResourceExhausted
// with the least memory of all plans made, which would do.
absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags, LowerFunction lower);
absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags);

}  // namespace pipec
