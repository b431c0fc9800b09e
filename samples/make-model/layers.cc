#include "samples/make-model/layers.h"

#include <cmath>

namespace pipec::samples {

Initial LinearInitial(int64_t inputs) {
  return {Initial::kUniform, 1.0 / std::sqrt(static_cast<double>(inputs))};
}

Starts LinearStarts(int64_t inputs) { return {LinearInitial(inputs), LinearInitial(inputs)}; }

std::string Linear(ModelWriter& w, const std::string& name, const std::string& x, int64_t inputs,
                   int64_t outputs, const Starts& starts) {
  const std::string weight = w.Parameter(name + ".weight", {outputs, inputs}, starts.weight);
  if (!starts.bias) return w.Op("MatMul", name, {x, Transposed(w, name, weight, {1, 0})});
  const std::string bias = w.Parameter(name + ".bias", {outputs}, *starts.bias);
  return w.Op("Add", name,
              {w.Op("MatMul", name + ".matmul", {x, Transposed(w, name, weight, {1, 0})}), bias});
}

std::string Linear(ModelWriter& w, const std::string& name, const std::string& x, int64_t inputs,
                   int64_t outputs) {
  return Linear(w, name, x, inputs, outputs, LinearStarts(inputs));
}

std::string Gemm(ModelWriter& w, const std::string& result, const std::string& name, const std::string& x,
                 int64_t inputs, int64_t outputs) {
  onnx::NodeProto* gemm = w.Node("Gemm", result,
                                 {x, w.Parameter(name + ".weight", {outputs, inputs}, LinearInitial(inputs)),
                                  w.Parameter(name + ".bias", {outputs}, LinearInitial(inputs))});
  ModelWriter::SetInt(gemm, "transB", 1);
  return gemm->output(0);
}

std::string Embedding(ModelWriter& w, const std::string& name, const std::string& ids, int64_t rows,
                      int64_t features, Initial start) {
  return w.Op("Gather", name, {w.Parameter(name + ".weight", {rows, features}, start), ids});
}

std::string LayerNorm(ModelWriter& w, const std::string& name, const std::string& x, int64_t features,
                      float epsilon) {
  onnx::NodeProto* node = w.Node("LayerNormalization", name,
                                 {x, w.Parameter(name + ".weight", {features}, {Initial::kOnes}),
                                  w.Parameter(name + ".bias", {features}, {Initial::kZeros})});
  ModelWriter::SetInt(node, "axis", -1);
  ModelWriter::SetFloat(node, "epsilon", epsilon);
  return node->output(0);
}

std::string Convolution(ModelWriter& w, const std::string& name, const std::string& x, int64_t inputs,
                        int64_t outputs, const Window& window, const Starts& starts) {
  std::vector<std::string> operands = {
      x, w.Parameter(name + ".weight", {outputs, inputs, window.size, window.size}, starts.weight)};
  if (starts.bias) operands.push_back(w.Parameter(name + ".bias", {outputs}, *starts.bias));
  onnx::NodeProto* node = w.Node("Conv", name, operands);
  ModelWriter::SetInts(node, "kernel_shape", {window.size, window.size});
  ModelWriter::SetInts(node, "strides", {window.stride, window.stride});
  ModelWriter::SetInts(node, "pads", std::vector<int64_t>(4, window.padding));
  return node->output(0);
}

std::string BatchNorm(ModelWriter& w, const std::string& name, const std::string& x, int64_t channels) {
  onnx::NodeProto* node = w.Node("BatchNormalization", name,
                                 {x, w.Parameter(name + ".weight", {channels}, {Initial::kOnes}),
                                  w.Parameter(name + ".bias", {channels}, {Initial::kZeros}),
                                  w.Parameter(name + ".running_mean", {channels}, {Initial::kZeros}),
                                  w.Parameter(name + ".running_var", {channels}, {Initial::kOnes})},
                                 3);
  ModelWriter::SetInt(node, "training_mode", 1);
  return node->output(0);
}

std::string MaxPool(ModelWriter& w, const std::string& name, const std::string& x, const Window& window) {
  onnx::NodeProto* node = w.Node("MaxPool", name, {x});
  ModelWriter::SetInts(node, "kernel_shape", {window.size, window.size});
  ModelWriter::SetInts(node, "strides", {window.stride, window.stride});
  ModelWriter::SetInts(node, "pads", std::vector<int64_t>(4, window.padding));
  return node->output(0);
}

std::string Transposed(ModelWriter& w, const std::string& name, const std::string& x,
                       const std::vector<int64_t>& perm) {
  onnx::NodeProto* node = w.Node("Transpose", name + ".transposed", {x});
  ModelWriter::SetInts(node, "perm", perm);
  return node->output(0);
}

std::string Concat(ModelWriter& w, const std::string& name, const std::vector<std::string>& parts,
                   int64_t axis) {
  onnx::NodeProto* node = w.Node("Concat", name, parts);
  ModelWriter::SetInt(node, "axis", axis);
  return node->output(0);
}

Dropout::Dropout(ModelWriter& w, double ratio) : w_(w) {
  if (ratio == 0) return;
  ratio_ = w_.ScalarConstant("dropout_ratio", static_cast<float>(ratio));
  training_ = w_.BoolConstant("dropout_training", true);
}

std::string Dropout::operator()(const std::string& name, const std::string& x) const {
  return ratio_.empty() ? x : w_.Op("Dropout", name, {x, ratio_, training_});
}

}  // namespace pipec::samples
