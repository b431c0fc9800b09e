// Small graphs for tests of the op table.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace pipec {

class GraphBuilder {
 public:
  Graph graph;

  Value* Input(Shape shape, int batch_axis = -1, DType dtype = DType::kFloat32) {
    Value* value = graph.AddValue(ValueKind::kInput, "x", {dtype, shape});
    value->batch_axis = batch_axis;
    return value;
  }
  Value* Ints(std::vector<int64_t> ints) {
    return graph.AddConstant(
        "ints", {DType::kInt64, {static_cast<int64_t>(ints.size())}},
        std::string(reinterpret_cast<const char*>(ints.data()), ints.size() * sizeof(int64_t)));
  }
  Node* Make(absl::string_view op, absl::string_view domain, std::vector<Value*> inputs,
             std::vector<Shape> outputs, Attributes attributes = {}, DType dtype = DType::kFloat32) {
    NodeSpec spec = Spec(op, inputs, outputs.size(), attributes);
    spec.domain = std::string(domain);
    for (size_t k = 0; k < outputs.size(); ++k) spec.outputs[k] = {dtype, outputs[k]};
    return graph.AddNode(spec);
  }
  static NodeSpec Spec(absl::string_view op, std::vector<Value*> inputs, int outputs,
                       Attributes attributes = {}) {
    NodeSpec spec;
    spec.op = std::string(op);
    spec.domain = kPipecDomain;
    spec.name = "n";
    spec.inputs = std::move(inputs);
    spec.attributes = std::move(attributes);
    spec.outputs.resize(outputs);
    return spec;
  }
};

inline Attributes With(std::vector<std::pair<std::string, Attribute>> list) {
  Attributes attributes;
  for (auto& [name, value] : list) attributes.Set(name, value);
  return attributes;
}

}  // namespace pipec
