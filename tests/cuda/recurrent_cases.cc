#include "tests/cuda/recurrent_cases.h"

#include <vector>

#include "tests/cuda/draw.h"

namespace pipec {
namespace {

// Behind the first five, states grow from step to step, and with them what rounding makes of them.
constexpr const char* kActivations[] = {"Tanh",    "Sigmoid", "HardSigmoid", "ScaledTanh",      "Softsign",
                                        "Relu",    "Affine",  "LeakyRelu",   "ThresholdedRelu", "Elu",
                                        "Softplus"};

struct Sizes {
  int64_t steps, batch, input, hidden, directions;
  bool batch_first;

  Shape State() const {
    return batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  }
  Shape Y() const {
    return batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden};
  }
};

void AddOptional(KernelCase& c, const TensorType& type, Random& random) {
  AddInput(c, type, random);
  if (Draw(random, 0, 1)) return;
  c.spec.inputs.back().present = false;
  c.inputs.back().clear();
}

// X, W, R, B?, sequence_lens?, initial_h?, and the attributes; `gates` gates, `activations` of a direction.
Sizes AddRecurrence(KernelCase& c, DType dtype, int64_t gates, size_t activations, Random& random) {
  Sizes s{Draw(random, 1, 4),     Draw(random, 1, 5), Draw(random, 1, 6), Draw(random, 1, 9), 1,
          Draw(random, 0, 1) != 0};
  constexpr const char* kDirections[] = {"forward", "reverse", "bidirectional"};
  const int64_t direction = Draw(random, 0, 2);
  if (direction == 2) s.directions = 2;
  Attributes& attributes = c.spec.attributes;
  attributes.Set("direction", std::string(kDirections[direction]));
  attributes.Set("layout", int64_t{s.batch_first});
  attributes.Set("hidden_size", s.hidden);
  if (Draw(random, 0, 1)) {
    std::vector<std::string> names;
    for (size_t i = 0; i < s.directions * activations; ++i)
      names.push_back(kActivations[Draw(random, 0, dtype == DType::kFloat64 ? 10 : 4)]);
    attributes.Set("activations", names);
  }
  if (gates == 3) attributes.Set("linear_before_reset", Draw(random, 0, 1));
  if (gates == 4) attributes.Set("input_forget", Draw(random, 0, 1));
  AddInput(c, {dtype, s.batch_first ? Shape{s.batch, s.steps, s.input} : Shape{s.steps, s.batch, s.input}},
           random);
  AddInput(c, {dtype, {s.directions, gates * s.hidden, s.input}}, random);
  AddInput(c, {dtype, {s.directions, gates * s.hidden, s.hidden}}, random);
  AddOptional(c, {dtype, {s.directions, 2 * gates * s.hidden}}, random);
  c.spec.inputs.push_back({{DType::kInt32, {s.batch}}});
  std::vector<int32_t> lengths;
  for (int64_t i = 0; i < s.batch; ++i) lengths.push_back(static_cast<int32_t>(Draw(random, 0, s.steps)));
  c.inputs.emplace_back(reinterpret_cast<const char*>(lengths.data()), lengths.size() * sizeof(int32_t));
  if (Draw(random, 0, 1)) {
    c.spec.inputs.back().present = false;
    c.inputs.back().clear();
  }
  AddOptional(c, {dtype, s.State()}, random);
  return s;
}

MakeCase Forward(const std::string& op, int64_t gates, size_t activations) {
  return [=](Random& random) {
    KernelCase c = Named("", op);
    const DType dtype = AnyFloat(random);
    const Sizes s = AddRecurrence(c, dtype, gates, activations, random);
    if (Draw(random, 0, 2) == 0) c.spec.attributes.Set("clip", 0.7f);
    if (gates == 4) {
      AddOptional(c, {dtype, s.State()}, random);
      AddOptional(c, {dtype, {s.directions, 3 * s.hidden}}, random);
    }
    c.spec.outputs = {{{dtype, s.Y()}}, {{dtype, s.State()}}};
    if (gates == 4) c.spec.outputs.push_back({{dtype, s.State()}});
    c.spec.outputs[Draw(random, 0, 1)].present = Draw(random, 0, 2) != 0;
    return c;
  };
}

// (X, W, R, B?, sequence_lens?, initial_h?, initial_c?, dY?, dY_h?, dY_c?) -> (dX, dGates, H, dInitial_h, more?)
MakeCase Gradient(const std::string& op, int64_t gates, size_t activations) {
  return [=](Random& random) {
    KernelCase c = Named("ai.pipec", op);
    const DType dtype = AnyFloat(random);
    const Sizes s = AddRecurrence(c, dtype, gates, activations, random);
    const TensorType state{dtype, s.State()};
    const auto add_cell = [&] {
      AddOptional(c, state, random);
      if (gates == 4) return;
      c.spec.inputs.back().present = false;
      c.inputs.back().clear();
    };
    add_cell();
    AddOptional(c, {dtype, s.Y()}, random);
    AddOptional(c, state, random);
    add_cell();
    const int64_t rows = s.steps * s.batch;
    const TensorType row{dtype, {s.directions, rows, s.hidden}};
    c.spec.outputs = {
        {c.spec.inputs[0].type}, {{dtype, {s.directions, rows, gates * s.hidden}}}, {row}, {state}};
    if (gates > 1) c.spec.outputs.push_back({gates == 4 ? state : row});
    return c;
  };
}

}  // namespace

void AddRecurrentCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases) {
  cases[{"", "RNN"}] = Forward("RNN", 1, 1);
  cases[{"", "GRU"}] = Forward("GRU", 3, 2);
  cases[{"", "LSTM"}] = Forward("LSTM", 4, 3);
  cases[{"ai.pipec", "RNNGrad"}] = Gradient("RNNGrad", 1, 1);
  cases[{"ai.pipec", "GRUGrad"}] = Gradient("GRUGrad", 3, 2);
  cases[{"ai.pipec", "LSTMGrad"}] = Gradient("LSTMGrad", 4, 3);
}

}  // namespace pipec
