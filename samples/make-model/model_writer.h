// Writes an ONNX model node by node: the small part of an exporter that the samples need.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"
#include "tools/support/written.h"

namespace pipec::samples {

// How a parameter starts out, as PyTorch's layers do.
struct Initial {
  enum Kind { kZeros, kOnes, kUniform, kNormal } kind = kZeros;
  double scale = 1;  // kUniform: drawn from [-scale, scale); kNormal: the standard deviation
};

struct WriterOptions {
  uint64_t seed = 0;
  bool no_weights = false;  // parameters point into a file that is never written: for planning only
};

class ModelWriter {
 public:
  ModelWriter(const std::string& name, const WriterOptions& options);

  // Dimensions below 0 become the symbolic dimension "batch". Returns the value's name.
  std::string Input(const std::string& name, onnx::TensorProto::DataType type,
                    const std::vector<int64_t>& shape);
  void Output(const std::string& name, const std::vector<int64_t>& shape);

  std::string Parameter(const std::string& name, const std::vector<int64_t>& shape, Initial initial);
  // Constant nodes: a float initializer would count as a parameter.
  std::string ScalarConstant(const std::string& name, float value);
  std::string BoolConstant(const std::string& name, bool value);
  std::string IntsConstant(const std::string& name, const std::vector<int64_t>& values);
  std::string FloatsConstant(const std::string& name, const std::vector<int64_t>& shape,
                             const std::vector<float>& values);
  // True on and below the diagonal; bool [1, 1, n, n].
  std::string CausalMask(const std::string& name, int64_t n);

  // Adds a node and returns it for its attributes; output k is named `name`, or `name`_k if there are
  // several.
  onnx::NodeProto* Node(const std::string& op, const std::string& name,
                        const std::vector<std::string>& inputs, int outputs = 1);
  // The same for a node with one output and no attribute; returns the output's name.
  std::string Op(const std::string& op, const std::string& name, const std::vector<std::string>& inputs);

  static void SetInt(onnx::NodeProto* node, const std::string& name, int64_t value);
  static void SetFloat(onnx::NodeProto* node, const std::string& name, float value);
  static void SetInts(onnx::NodeProto* node, const std::string& name, const std::vector<int64_t>& values);

  // The operators' version, if not the one that all models have.
  void SetOpset(int64_t version);

  // Writes the model; above 1 GB of parameters (or without weights) they are external data in FILE.data.
  // Adds the files to `written`. InvalidArgument: a parameter of more than 2^48 elements.
  absl::Status Write(const std::string& file, Written* written);

 private:
  struct Weight {
    onnx::TensorProto* tensor;
    Initial initial;
    int64_t bytes;
  };
  onnx::TensorProto* Constant(const std::string& name, onnx::TensorProto::DataType type,
                              const std::vector<int64_t>& shape);
  std::string Draw(const Weight& weight);

  onnx::ModelProto model_;
  onnx::GraphProto* graph_;
  WriterOptions options_;
  std::vector<Weight> weights_;
  absl::Status too_large_;
  std::mt19937_64 random_;
};

}  // namespace pipec::samples
