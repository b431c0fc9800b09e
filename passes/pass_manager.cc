#include "passes/pass_manager.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/ir/verify.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status RunOne(const PassInfo& pass, Module& module, const PassContext& context,
                    const PassManagerOptions& options) {
  if (module.level < pass.before) {
    return absl::FailedPreconditionError(absl::StrCat("pass ", pass.name, " needs level ", Name(pass.before),
                                                      ", the module is at level ", Name(module.level)));
  }
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(const bool changed, pass.run(module, context));
  module.level = std::max(module.level, pass.after);
  if (options.timings) {
    options.timings->push_back({pass.name, absl::ToDoubleSeconds(absl::Now() - start), changed});
  }
  if (absl::Status status = changed ? Verify(module) : absl::OkStatus(); !status.ok()) {
    return absl::InternalError(
        absl::StrCat("pass ", pass.name, " left the module broken: ", status.message()));
  }
  if (options.after_pass) options.after_pass(pass, module);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunPipeline(Module& module, const PassContext& context, const PassManagerOptions& options) {
  RETURN_IF_ERROR(Verify(module));
  for (const PassInfo& pass : AllPasses()) {
    if (pass.training_only && module.mode != Mode::kTrain) continue;
    if (std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end())
      continue;
    RETURN_IF_ERROR(RunOne(pass, module, context, options));
  }
  return absl::OkStatus();
}

absl::Status RunPasses(Module& module, const PassContext& context, absl::Span<const std::string> names,
                       const PassManagerOptions& options) {
  RETURN_IF_ERROR(Verify(module));
  for (const std::string& name : names) {
    const PassInfo* pass = FindPass(name);
    if (!pass) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown pass '", name, "'; there are ",
          absl::StrJoin(AllPasses(), ", ",
                        [](std::string* out, const PassInfo& info) { absl::StrAppend(out, info.name); })));
    }
    RETURN_IF_ERROR(RunOne(*pass, module, context, options));
  }
  return absl::OkStatus();
}

}  // namespace pipec
