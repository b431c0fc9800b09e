// Runs the training passes over a small model, as every test of theirs does.
#pragma once

#include "compiler/ir/verify.h"
#include "passes/passes.h"
#include "small_model.h"

namespace pipec {

inline absl::Status BuildTraining(Module& module, const CompileOptions& options = {}) {
  const PassContext context{options};
  for (auto pass : {BuildLoss, BuildGradients, BuildUpdate}) {
    if (auto result = pass(module, context); !result.ok()) return result.status();
  }
  module.level = Level::kTraining;
  if (auto result = SplitBackward(module, context); !result.ok()) return result.status();
  return Verify(module);
}

// The sum of y's elements is the model's only output.
inline void MakeLoss(SmallModel& m, Value* y) {
  m.graph().outputs = {m.Op("ReduceSum", {y}, {{"keepdims", int64_t{0}}})};
}

}  // namespace pipec
