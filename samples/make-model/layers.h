// The layers that the models are made of, as PyTorch's modules compute and name them: a layer `name` has the
// parameters `name`.weight and `name`.bias, and its result is the value `name`. Shapes: B samples, T tokens,
// C features, H x W pixels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "samples/make-model/model_writer.h"

namespace pipec::samples {

// nn.Linear's, nn.Conv's and their biases' default: uniform in +-1/sqrt(inputs), `inputs` being the numbers
// that one output is made of.
Initial LinearInitial(int64_t inputs);

struct Starts {
  Initial weight;
  std::optional<Initial> bias;  // absent: the layer has none
};
Starts LinearStarts(int64_t inputs);

// (..., inputs) -> (..., outputs); the weight is [outputs, inputs], transposed in the graph, as exporters
// write it.
std::string Linear(ModelWriter& w, const std::string& name, const std::string& x, int64_t inputs,
                   int64_t outputs, const Starts& starts);
std::string Linear(ModelWriter& w, const std::string& name, const std::string& x, int64_t inputs,
                   int64_t outputs);

// The same on two axes, as one Gemm, the result named `result`: (B, inputs) -> (B, outputs).
std::string Gemm(ModelWriter& w, const std::string& result, const std::string& name, const std::string& x,
                 int64_t inputs, int64_t outputs);

// Token ids (B, T) -> (B, T, features) from the table `name`.weight [rows, features].
std::string Embedding(ModelWriter& w, const std::string& name, const std::string& ids, int64_t rows,
                      int64_t features, Initial start);

// Over the last axis.
std::string LayerNorm(ModelWriter& w, const std::string& name, const std::string& x, int64_t features,
                      float epsilon = 1e-5f);

struct Window {
  int64_t size = 3, stride = 1, padding = 1;
};
// (B, inputs, H, W) -> (B, outputs, H', W').
std::string Convolution(ModelWriter& w, const std::string& name, const std::string& x, int64_t inputs,
                        int64_t outputs, const Window& window, const Starts& starts);
// Over the channels, axis 1, in training form, with the running statistics as parameters that the optimizer
// leaves alone.
std::string BatchNorm(ModelWriter& w, const std::string& name, const std::string& x, int64_t channels);
std::string MaxPool(ModelWriter& w, const std::string& name, const std::string& x, const Window& window);

std::string Transposed(ModelWriter& w, const std::string& name, const std::string& x,
                       const std::vector<int64_t>& perm);
std::string Concat(ModelWriter& w, const std::string& name, const std::vector<std::string>& parts,
                   int64_t axis);

// Leaves out a share of the activations in training; nothing at all if the ratio is 0.
class Dropout {
 public:
  Dropout(ModelWriter& w, double ratio);
  std::string operator()(const std::string& name, const std::string& x) const;

 private:
  ModelWriter& w_;
  std::string ratio_, training_;
};

}  // namespace pipec::samples
