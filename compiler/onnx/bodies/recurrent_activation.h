// The activations of RNN, GRU and LSTM and their slopes, written as ONNX ops.
#pragma once

#include <string>
#include <vector>

#include "compiler/onnx/bodies/body.h"

namespace pipec {

struct GateActivation {
  std::string name;  // as ONNX spells it, in lower case
  float alpha = 0, beta = 0;
};

// From the attributes activations, activation_alpha and activation_beta: `directions` times as many as
// `otherwise`, which stand where the attribute is absent.
std::vector<GateActivation> ReadGateActivations(const Attributes& attributes, int64_t directions,
                                                const std::vector<std::string>& otherwise);

// f(x)
Body::Name ActivateGate(Body& b, DType dtype, const GateActivation& f, Body::Name x);

// f'(x), where y = f(x)
Body::Name GateSlope(Body& b, DType dtype, const GateActivation& f, const Body::Name& y);

}  // namespace pipec
