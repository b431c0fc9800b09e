// Small models for the tests of the training passes, made node by node with ONNX's own shape inference.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/onnx/schema/infer.h"
#include "gtest/gtest.h"

namespace pipec {

class SmallModel {
 public:
  explicit SmallModel(DType dtype = DType::kFloat64) : dtype_(dtype), module_(std::make_unique<Module>()) {}

  Module& module() { return *module_; }
  Graph& graph() { return module_->graph; }

  // Uniformly drawn from [low, high).
  Value* Parameter(std::vector<int64_t> shape, double low = -1, double high = 1) {
    Value* value = graph().AddValue(ValueKind::kParameter, "p", Type(shape));
    std::vector<double> contents(value->type.elements());
    for (double& x : contents) x = Draw(low, high);
    SetData(value, contents);
    return value;
  }
  Value* ParameterOf(std::vector<int64_t> shape, const std::vector<double>& contents) {
    Value* value = graph().AddValue(ValueKind::kParameter, "p", Type(shape));
    SetData(value, contents);
    return value;
  }
  Value* Input(std::vector<int64_t> shape) { return graph().AddValue(ValueKind::kInput, "x", Type(shape)); }
  Value* Constant(std::vector<int64_t> shape, const std::vector<double>& contents) {
    Value* value = graph().AddValue(ValueKind::kConstant, "c", Type(shape));
    SetData(value, contents);
    return value;
  }
  Value* Random(std::vector<int64_t> shape) {
    std::vector<double> contents(NumElements(shape));
    for (double& x : contents) x = Draw(-1, 1);
    return Constant(std::move(shape), contents);
  }
  Value* Ints(const std::vector<int64_t>& contents) {
    return Ints({static_cast<int64_t>(contents.size())}, contents);
  }
  Value* Ints(std::vector<int64_t> shape, const std::vector<int64_t>& contents) {
    return graph().AddConstant(
        "i", {DType::kInt64, Shape(shape.begin(), shape.end())},
        std::string(reinterpret_cast<const char*>(contents.data()), contents.size() * 8));
  }
  Value* Floats(const std::vector<float>& contents) {
    return graph().AddConstant(
        "f", {DType::kFloat32, {static_cast<int64_t>(contents.size())}},
        std::string(reinterpret_cast<const char*>(contents.data()), contents.size() * 4));
  }
  Value* Bools(std::vector<int64_t> shape, const std::string& contents) {
    return graph().AddConstant("b", {DType::kBool, Shape(shape.begin(), shape.end())}, contents);
  }

  std::vector<Value*> Ops(absl::string_view op, std::vector<Value*> inputs, Attributes::Map attributes = {},
                          absl::string_view domain = "", int outputs = 1) {
    NodeSpec spec{.op = std::string(op), .domain = std::string(domain), .inputs = std::move(inputs)};
    for (auto& [name, value] : attributes) spec.attributes.Set(name, value);
    auto types = InferTypes(spec, outputs);
    if (!types.ok()) {
      ADD_FAILURE() << op << ": " << types.status();
      return {};
    }
    spec.outputs = *types;
    const Node* node = graph().AddNode(std::move(spec));
    return {node->outputs().begin(), node->outputs().end()};
  }
  Value* Op(absl::string_view op, std::vector<Value*> inputs, Attributes::Map attributes = {},
            absl::string_view domain = "") {
    return Ops(op, std::move(inputs), std::move(attributes), domain).at(0);
  }
  Value* Helper(absl::string_view op, std::vector<Value*> inputs, Attributes::Map attributes = {}) {
    return Op(op, std::move(inputs), std::move(attributes), kPipecDomain);
  }

 private:
  TensorType Type(const std::vector<int64_t>& shape) const {
    return {dtype_, Shape(shape.begin(), shape.end())};
  }
  double Draw(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  void SetData(Value* value, const std::vector<double>& contents) {
    auto bytes = std::make_shared<std::string>();
    for (double x : contents) {
      const float f = static_cast<float>(x);
      dtype_ == DType::kFloat64 ? bytes->append(reinterpret_cast<const char*>(&x), 8)
                                : bytes->append(reinterpret_cast<const char*>(&f), 4);
    }
    ASSERT_EQ(bytes->size(), value->type.bytes());
    value->data.length = bytes->size();
    value->data.bytes = std::move(bytes);
  }

  DType dtype_;
  std::unique_ptr<Module> module_;
  std::mt19937_64 random_{1};
};

}  // namespace pipec
