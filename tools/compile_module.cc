#include "tools/compile_module.h"

#include "passes/pass_manager.h"
#include "runtime/base/status.h"

namespace pipec {

absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags,
                                                      absl::FunctionRef<absl::Status(Module&)> lower) {
  ASSIGN_OR_RETURN(std::unique_ptr<Module> module, flags.Import());
  absl::Status lowered = lower(*module);
  if (absl::IsResourceExhausted(lowered) && flags.RecomputeEverywhere()) {
    ASSIGN_OR_RETURN(module, flags.Import());
    lowered = lower(*module);
  }
  RETURN_IF_ERROR(lowered);
  return module;
}

absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags) {
  return CompileModule(flags, [&flags](Module& module) { return RunPipeline(module, flags.context()); });
}

}  // namespace pipec
