// The outputs of a model, when its nodes are there.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/module.h"
#include "compiler/onnx/batch/baked_batch.h"
#include "compiler/onnx/import.h"
#include "compiler/onnx/in_place/counted_axes.h"
#include "compiler/onnx/scope.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// Appends them to the graph's outputs. Of a sequence NAME its tensors are outputs, NAME.0, NAME.1, ...; an
// optional is its element, or nothing. A tensor whose size depends on data has its count beside it
// (Module::counted_outputs). Errors: the refusal of an output, unless another is left and options drop it;
// InvalidArgument for one that nothing defines, or that is not what the model declares.
absl::Status AddOutputs(const onnx::GraphProto& graph, const ImportOptions& options, const BakedBatch& batch,
                        const CountedAxes& counted, const Scope& scope, Module& module);

}  // namespace pipec
