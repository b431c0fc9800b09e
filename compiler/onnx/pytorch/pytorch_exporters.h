// The two exporters of torch.onnx: what each leaves of a parameter's name, and how it is found again.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "compiler/onnx/pytorch/parameter_editor.h"
#include "compiler/onnx/pytorch/pytorch_parameters.h"

namespace pipec {

// dynamo=False: nodes are named by the modules they are in, "/layers.0/fc/MatMul".
absl::Status RestoreFromScopes(onnx::GraphProto& graph, ParameterEditor& editor, PyTorchParameters& result);

// dynamo=True: `signature` lists the parameters, and the metadata of each node says which call with which
// parameters it comes from.
absl::Status RestoreFromMetadata(onnx::GraphProto& graph, const std::string& signature,
                                 ParameterEditor& editor, PyTorchParameters& result);

// The counter that a BatchNormalization of PyTorch has beside its running statistics, and ONNX has not.
void AddBatchCounter(const std::string& module, ParameterEditor& editor, PyTorchParameters& result);

}  // namespace pipec
