// RNN, GRU and LSTM: directions, layouts, sequences of different lengths, absent operands.
#include "gradient_cases.h"

namespace pipec {
namespace {

constexpr int64_t kSteps = 3, kBatch = 2, kInput = 3, kHidden = 2;

struct Layer {
  absl::string_view op;
  int64_t gates = 1, directions = 1;
  bool bias = true, lengths = false, states = true, batch_first = false;
  std::vector<int> outputs = {0, 1, 2};  // that the loss reads
};

std::vector<Value*> Build(SmallModel& m, const Layer& layer, Attributes::Map attributes) {
  const int64_t rows = layer.gates * kHidden, d = layer.directions;
  const std::vector<int64_t> state =
      layer.batch_first ? std::vector<int64_t>{kBatch, d, kHidden} : std::vector<int64_t>{d, kBatch, kHidden};
  std::vector<Value*> operands = {
      layer.batch_first ? m.Parameter({kBatch, kSteps, kInput}) : m.Parameter({kSteps, kBatch, kInput}),
      m.Parameter({d, rows, kInput}), m.Parameter({d, rows, kHidden})};
  operands.push_back(layer.bias ? m.Parameter({d, 2 * rows}) : nullptr);
  Value* lengths = nullptr;
  if (layer.lengths) {
    const int32_t contents[] = {1, 3};
    lengths = m.graph().AddConstant("lengths", {DType::kInt32, {kBatch}},
                                    std::string(reinterpret_cast<const char*>(contents), sizeof contents));
  }
  operands.push_back(lengths);
  const bool is_lstm = layer.op == "LSTM";
  for (int k = 0; k < (is_lstm ? 2 : 1); ++k) operands.push_back(layer.states ? m.Parameter(state) : nullptr);
  attributes["hidden_size"] = kHidden;
  if (d == 2) attributes["direction"] = std::string("bidirectional");
  if (layer.batch_first) attributes["layout"] = int64_t{1};
  const std::vector<Value*> all = m.Ops(layer.op, operands, attributes, "", is_lstm ? 3 : 2);
  std::vector<Value*> read;
  for (int k : layer.outputs) {
    if (k < all.size()) read.push_back(all[k]);
  }
  return read;
}

using Strings = std::vector<std::string>;

}  // namespace

std::vector<GradientCase> RecurrentCases() {
  using M = SmallModel;
  return {
      {"RNN", "", "both_directions", [](M& m) { return Build(m, {.op = "RNN", .directions = 2}, {}); }},
      {"RNN", "", "reversed_lengths_softsign",
       [](M& m) {
         return Build(m, {.op = "RNN", .bias = false, .lengths = true},
                      {{"direction", std::string("reverse")}, {"activations", Strings{"Softsign"}}});
       }},
      {"GRU", "", "both_directions",
       [](M& m) { return Build(m, {.op = "GRU", .gates = 3, .directions = 2}, {}); }},
      {"GRU", "", "lengths", [](M& m) { return Build(m, {.op = "GRU", .gates = 3, .lengths = true}, {}); }},
      {"GRU", "", "linear_before_reset",
       [](M& m) {
         return Build(m, {.op = "GRU", .gates = 3, .directions = 2, .lengths = true},
                      {{"linear_before_reset", int64_t{1}}});
       }},
      {"GRU", "", "batch_first_last_state",
       [](M& m) {
         return Build(m, {.op = "GRU", .gates = 3, .bias = false, .states = false, .batch_first = true, .outputs = {1}},
                      {{"linear_before_reset", int64_t{1}}});
       }},
      {"LSTM", "", "both_directions",
       [](M& m) { return Build(m, {.op = "LSTM", .gates = 4, .directions = 2}, {}); }},
      {"LSTM", "", "lengths_batch_first",
       [](M& m) {
         return Build(m, {.op = "LSTM", .gates = 4, .directions = 2, .lengths = true, .batch_first = true},
                      {});
       }},
      {"LSTM", "", "steps_only",
       [](M& m) {
         return Build(m, {.op = "LSTM", .gates = 4, .bias = false, .states = false, .outputs = {0}}, {});
       }},
      {"LSTM", "", "cell_only_reversed",
       [](M& m) {
         return Build(m, {.op = "LSTM", .gates = 4, .outputs = {2}}, {{"direction", std::string("reverse")}});
       }},
      {"LSTM", "", "other_activations",
       [](M& m) {
         return Build(m, {.op = "LSTM", .gates = 4},
                      {{"activations", Strings{"HardSigmoid", "ScaledTanh", "Softplus"}},
                       {"activation_alpha", std::vector<float>{0.1f, 0.7f}},
                       {"activation_beta", std::vector<float>{0.5f, 1.3f}}});
       }},
      {"LSTM", "", "input_forget",
       [](M& m) {
         return Build(m, {.op = "LSTM", .gates = 4, .lengths = true}, {{"input_forget", int64_t{1}}});
       }},
  };
}

}  // namespace pipec
