// What a value is called whose node took in the node before it.
#pragma once

#include "absl/strings/string_view.h"
#include "passes/pass.h"

namespace pipec {

// `result` is now made by the node that made `before`, a value that is gone: a cut that the user asked for there is one
// here, unless there is one here anyhow.
void KeepCut(Graph& graph, const CompileOptions& options, absl::string_view before, Value* result);

}  // namespace pipec
