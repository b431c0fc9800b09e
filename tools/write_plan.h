// A finished module on disk: the plan's rank files, parameters, and the model as ONNX beside them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "compiler/cost/cluster.h"
#include "compiler/emit/parameter_placement.h"
#include "compiler/ir/module.h"

namespace pipec {

// `model_path`: the user's model, which the plan carries with its weights pointing into the plan's (or the
// user's) files; `report`: contents of report.html; `cluster`: of whose devices
// the instructions carry the modelled times. Errors are EmitPlan's.
absl::Status WritePlan(const Module& module, const std::string& model_path, const std::string& directory,
                       ParameterMode parameters, const std::string& report,
                       const Cluster& cluster);

}  // namespace pipec
