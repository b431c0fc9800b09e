// Writes a planned module as a plan (runtime/plan/FORMAT.md).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/cost/cluster.h"
#include "compiler/emit/parameter_placement.h"
#include "compiler/ir/module.h"
#include "runtime/plan/manifest.h"

namespace pipec {

struct PlanFile {
  std::string name;
  std::string bytes;
};

struct EmitOptions {
  std::string directory;
  std::string pipec_version;
  // Written as they are: model.onnx (external data in kParameterFile), export.onnx (external data in
  // model.safetensors, same offsets), report.html. Names are the caller's, never a tensor's.
  std::vector<PlanFile> files;
  // Whose devices' the modelled times of instructions are; null: they are left out.
  const Cluster* cluster = nullptr;
};

// Writes everything beside the target and renames at the end: on failure nothing is left behind. Errors:
// AlreadyExists if the target is there and is not a plan; ResourceExhausted if the disk is full.
absl::Status EmitPlan(const Module& module, const ParameterPlacement& placement, const EmitOptions& options);

// AlreadyExists, with what would help, if EmitPlan would refuse the target: to say so before compiling.
absl::Status CheckTarget(const std::string& directory);

// The manifest without its files, the hashes of linked parameters among them.
Manifest MakeManifest(const Module& module, const ParameterPlacement& placement,
                      absl::string_view pipec_version);

}  // namespace pipec
