// What ONNX's schema functions ask of a node, answered from a NodeSpec: type inference and context-dependent
// function bodies.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "onnx/defs/schema.h"
#include "onnx/defs/shape_inference.h"

namespace pipec {

onnx::TypeProto ToProto(const TensorType& type);

// Protobuf messages are made only for what is asked: most schemas look at no attribute and at no contents.
class SchemaContext : public onnx::InferenceContext {
 public:
  SchemaContext(const NodeSpec& spec, int outputs);

  const onnx::AttributeProto* getAttribute(const std::string& name) const override;
  size_t getNumInputs() const override { return spec_.inputs.size(); }
  const onnx::TypeProto* getInputType(size_t index) const override;
  bool hasInput(size_t index) const override;
  // The contents of a constant in memory of at most 64 KiB.
  const onnx::TensorProto* getInputData(size_t index) const override;
  size_t getNumOutputs() const override { return outputs_.size(); }
  onnx::TypeProto* getOutputType(size_t index) override;
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string&) override { return nullptr; }
  const onnx::SparseTensorProto* getInputSparseData(size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(size_t) const override { return nullptr; }
  std::string getDisplayName() const override { return spec_.op; }

 private:
  const NodeSpec& spec_;
  std::vector<onnx::TypeProto> inputs_;
  std::vector<onnx::TypeProto> outputs_;
  // Deques: what was handed out keeps its address.
  mutable std::deque<onnx::AttributeProto> attributes_;
  mutable std::deque<std::pair<size_t, onnx::TensorProto>> data_;
};

}  // namespace pipec
