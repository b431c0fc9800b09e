// Values and single nodes of an exported model (module.h).
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/onnx/bodies/bodies.h"
#include "compiler/onnx/export/module.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// Places the contents of `proto` in a file; what it held is cleared.
void SetExternal(onnx::TensorProto& proto, absl::string_view location, uint64_t offset, uint64_t length);

// `value`'s type under a name.
void AddInfo(const Value& value, const std::string& name,
             google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& list);

// A parameter or constant. One without contents is an input: ONNX has no other word for it.
void AddTensor(const Value& value, const ExportOptions& options, onnx::GraphProto& graph);

// An input whose default is zero.
void AddZeros(const Value& value, const ExportOptions& options, onnx::GraphProto& graph);

// A run-time scalar: an input with this default.
void AddScalar(const std::string& name, double value, onnx::GraphProto& graph);

// The run-time scalars that are operands of the exported node.
std::vector<std::string> RunTimeScalarsOf(const Node& node);

// A helper node becomes a call of its function. Attributes of ONNX's ops that are pipec's own are left out.
onnx::NodeProto NodeToProto(const Node& node, HelperFunctions& functions);

onnx::NodeProto OneOutput(const std::string& op, const std::vector<std::string>& inputs,
                          const std::string& output);
void SetInt(const std::string& name, int64_t value, onnx::NodeProto& node);

// If a value of the graph has this name, it gets another: the name is to be an output's. What functions call it
// inside is their own.
void FreeName(const std::string& name, onnx::GraphProto& graph);

// The newest opset of every domain that the model and its functions use.
void AddOpsets(onnx::ModelProto& model);

}  // namespace pipec
