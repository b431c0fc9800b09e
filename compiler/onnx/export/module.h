// A module as a valid ONNX model. Helper ops are model-local functions with ONNX bodies (bodies/bodies.h), so any
// ONNX runtime can run what pipec runs.
//
// A training graph is that of one microbatch with its update:
//   inputs   the model's; the sums over microbatches, the optimizer's states, and the run-time scalars (lr,
//            weight_decay, seed, step, ...), which have defaults: zeros, and what ExportOptions says
//   outputs  loss, gradient_norm, grad:PARAMETER for every trained parameter; then whatever takes the place of a
//            parameter, a sum or a state, named as in the module's text: fed to the next run, they go on
// With one microbatch a run is a step of pipec's. With M, M runs are one, each fed with the sums of the one before:
// after the last one loss and gradients are the batch's. The gradients are what the optimizer gets, before clip_value.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/ir/module.h"

namespace pipec {

// Contents that lie in a file beside the models: parameters and constants one after the other, then zeros, which
// all defaults that are zero share.
struct ModelData {
  std::string file;                                        // relative to the models
  std::vector<std::pair<const Value*, uint64_t>> tensors;  // with their offsets, ascending
  uint64_t zeros = 0;                                      // offset
  uint64_t bytes = 0;                                      // of the file
};
ModelData PlaceModelData(const Module& module, std::string file);

struct ExportOptions {
  std::map<std::string, double> scalars;  // defaults of the run-time scalars; 0 for what is not among them
  const ModelData* data = nullptr;  // null: contents in memory are in the model, others stay in their files
};

// The whole module, serialised. Below level staged its nodes as they are; from there on the consecutive nodes of
// a stage are a function, called from the main graph, with the messages between the calls.
absl::StatusOr<std::string> ExportModule(const Module& module, const ExportOptions& options);

// One stage of a module of level staged or above: what it receives are inputs, what it sends are outputs under
// the name that the receiver has for it.
absl::StatusOr<std::string> ExportStage(const Module& module, int stage, const ExportOptions& options);

}  // namespace pipec
