// Runs passes in the table's order, checks the module after each one that changed something, and says how long each
// took.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "passes/pass.h"

namespace pipec {

struct PassTiming {
  absl::string_view name;
  double seconds = 0;
  bool changed = false;
};

struct PassManagerOptions {
  std::vector<std::string> disabled;  // pass names
  // Called after a pass that ran (for --print-after); may be empty.
  std::function<void(const PassInfo&, const Module&)> after_pass;
  std::vector<PassTiming>* timings = nullptr;
};

// Runs every pass of AllPasses() that applies to the module's mode. A failing verifier is an Internal error that names
// the pass.
absl::Status RunPipeline(Module& module, const PassContext& context, const PassManagerOptions& options = {});

// Runs the named passes in the order given. Unknown name: InvalidArgument that lists the nearest.
absl::Status RunPasses(Module& module, const PassContext& context, absl::Span<const std::string> names,
                       const PassManagerOptions& options = {});

}  // namespace pipec
