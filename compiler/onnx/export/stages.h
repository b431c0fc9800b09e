// A staged module as ONNX: each stage's consecutive nodes are a function, called from the main graph;
// messages stay between the calls, so a viewer shows the pipeline.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/module.h"
#include "compiler/onnx/bodies/bodies.h"
#include "onnx/onnx_pb.h"

namespace pipec {

inline constexpr char kStageDomain[] = "ai.pipec.stages";

// Fills in the main graph's nodes and the functions (stage_0_forward, stage_0_backward, stage_0_update,
// numbered if a stage has several stretches) for `nodes`, in execution order. `needed`: results that the main
// graph needs though no node uses them outside their function.
void AddStageFunctions(const std::vector<const Node*>& nodes, const absl::flat_hash_set<const Value*>& needed,
                       HelperFunctions& functions, onnx::ModelProto& model);

}  // namespace pipec
