// A model through the whole of pipec: imported, compiled in infer mode, written as a plan, read back, run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/host_array.h"
#include "tests/conformance/suite.h"

namespace pipec {

struct RunModelOptions {
  int stages = 1;        // of the second run
  bool on_cuda = false;  // planned for GPUs and run on them, all ranks on one; else on the CPU
  // A folder that is the caller's: the plan is written there, and what an earlier call wrote is replaced.
  std::string folder;
};

struct ModelRuns {
  NamedArrays whole;               // the outputs by name
  std::optional<NamedArrays> cut;  // of a run in `stages` stages, if that is several and so many can be made
};

// Inputs that shapes depend on cannot be fed at run time: where the import asks for it, or CUDA's kernels do,
// they are bound to their contents, as --input NAME=FILE.npy does: first those of integers and bools, then
// all but the largest, then all. Inputs without a declared shape are declared with the shape that they have.
// Unimplemented where the device has no kernel for what is left to run.
absl::StatusOr<ModelRuns> RunModel(const std::string& path, const onnx::ModelProto& model,
                                   const SuiteData& data, const RunModelOptions& options);

}  // namespace pipec
