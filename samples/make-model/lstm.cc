#include "absl/strings/str_cat.h"
#include "samples/make-model/layers.h"
#include "samples/make-model/models.h"

namespace pipec::samples {
namespace {

// The layers of an nn.LSTM of as many features as its inputs; all its parameters start within
// +-1/sqrt(features).
class Lstm {
 public:
  Lstm(ModelWriter& w, const std::string& name, int64_t features)
      : w_(w),
        name_(name),
        features_(features),
        start_(LinearInitial(features)),
        first_axis_(w.IntsConstant(name + ".first_axis", {0})),
        directions_(w.IntsConstant(name + ".directions", {1})) {}

  // (T, B, C) -> (T, B, C).
  std::string Layer(int64_t layer, const std::string& x) {
    const std::string weight_ih = OnnxOrder(absl::StrCat("weight_ih_l", layer), {4 * features_, features_});
    const std::string weight_hh = OnnxOrder(absl::StrCat("weight_hh_l", layer), {4 * features_, features_});
    const std::string bias_ih = OnnxOrder(absl::StrCat("bias_ih_l", layer), {4 * features_});
    const std::string bias_hh = OnnxOrder(absl::StrCat("bias_hh_l", layer), {4 * features_});
    const std::string biases = Concat(w_, absl::StrCat(name_, ".biases_l", layer), {bias_ih, bias_hh}, 0);
    onnx::NodeProto* lstm =
        w_.Node("LSTM", absl::StrCat(name_, ".lstm_l", layer),
                {x, OneDirection(weight_ih), OneDirection(weight_hh), OneDirection(biases)});
    ModelWriter::SetInt(lstm, "hidden_size", features_);
    return w_.Op("Squeeze", absl::StrCat(name_, ".layer_l", layer), {lstm->output(0), directions_});
  }

 private:
  // A parameter whose rows are by gate, PyTorch's i f g o, in the order i o f g of ONNX.
  std::string OnnxOrder(const std::string& parameter, const std::vector<int64_t>& shape) {
    const std::string name = absl::StrCat(name_, ".", parameter);
    onnx::NodeProto* gates = w_.Node("Split", name + ".gate", {w_.Parameter(name, shape, start_)}, 4);
    ModelWriter::SetInt(gates, "axis", 0);
    ModelWriter::SetInt(gates, "num_outputs", 4);
    return Concat(w_, name + ".reordered",
                  {gates->output(0), gates->output(3), gates->output(1), gates->output(2)}, 0);
  }

  std::string OneDirection(const std::string& x) {
    return w_.Op("Unsqueeze", x + ".operand", {x, first_axis_});
  }

  ModelWriter& w_;
  const std::string name_;
  const int64_t features_;
  const Initial start_;
  const std::string first_axis_, directions_;
};

}  // namespace

absl::Status BuildLstm(ModelWriter& w, const ModelSize& size) {
  const std::string ids = w.Input("input_ids", onnx::TensorProto::INT64, {size.batch, size.sequence});
  const Dropout dropout(w, size.dropout);
  std::string x = Embedding(w, "encoder", ids, size.vocabulary, size.hidden, {Initial::kNormal, 1});
  x = Transposed(w, "time_first", dropout("drop", x), {1, 0, 2});
  Lstm rnn(w, "rnn", size.hidden);
  for (int64_t layer = 0; layer < size.layers; ++layer)
    x = dropout(absl::StrCat("rnn.dropout_l", layer), rnn.Layer(layer, x));
  x = Transposed(w, "batch_first", x, {1, 0, 2});
  const Initial start = LinearInitial(size.hidden);
  const std::string weight = w.Parameter("decoder.weight", {size.vocabulary, size.hidden}, start);
  x = w.Op("MatMul", "decoder", {x, Transposed(w, "decoder", weight, {1, 0})});
  w.Op("Add", "logits", {x, w.Parameter("decoder.bias", {size.vocabulary}, start)});
  w.Output("logits", {size.batch, size.sequence, size.vocabulary});
  return absl::OkStatus();
}

}  // namespace pipec::samples
