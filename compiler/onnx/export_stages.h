// A staged module as ONNX: each stage's consecutive nodes are a function, called from the main graph;
// messages stay between the calls, so a viewer shows the pipeline.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/module.h"
#include "onnx/onnx_pb.h"

namespace pipec {

inline constexpr char kStageDomain[] = "ai.pipec.stages";

onnx::NodeProto ToProto(const Node& node);

// Fills in the main graph's nodes and the functions (stage_0_forward, stage_0_backward, stage_0_update,
// numbered if a stage has several stretches). `domains`: the opset imports of every function.
void AddStageFunctions(const Module& module, const absl::flat_hash_map<std::string, int>& domains,
                       onnx::ModelProto& model);

}  // namespace pipec
