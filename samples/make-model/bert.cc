#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "samples/make-model/attention.h"
#include "samples/make-model/layers.h"
#include "samples/make-model/models.h"

namespace pipec::samples {
namespace {

// Hugging Face's: weights and tables near 0, biases at 0.
constexpr Initial kSmall = {Initial::kNormal, 0.02};
constexpr float kEpsilon = 1e-12f;

class Bert {
 public:
  Bert(ModelWriter& writer, const ModelSize& size) : w_(writer), size_(size) {}

  // (B, T) tokens -> (B, T, V) logits.
  void Build() {
    const std::string words =
        w_.Parameter("bert.embeddings.word_embeddings.weight", {size_.vocabulary, size_.hidden}, kSmall);
    std::string x = Embeddings(words);
    for (int64_t layer = 0; layer < size_.layers; ++layer)
      x = Layer(absl::StrCat("bert.encoder.layer.", layer), x);
    x = w_.Op("Gelu", "cls.predictions.gelu", {Dense("cls.predictions.transform.dense", x, 1, 1)});
    x = Norm("cls.predictions.transform.LayerNorm", x);
    x = w_.Op("MatMul", "cls.predictions.decoder", {x, Transposed(w_, "cls.predictions", words, {1, 0})});
    w_.Op("Add", "logits", {x, w_.Parameter("cls.predictions.bias", {size_.vocabulary}, {Initial::kZeros})});
    w_.Output("logits", {size_.batch, size_.sequence, size_.vocabulary});
  }

 private:
  // Token, kind of segment and position: (B, T) -> (B, T, C).
  std::string Embeddings(const std::string& words) {
    const std::vector<int64_t> shape = {size_.batch, size_.sequence};
    const std::string ids = w_.Input("input_ids", onnx::TensorProto::INT64, shape);
    const std::string types = w_.Input("token_type_ids", onnx::TensorProto::INT64, shape);
    const std::string name = "bert.embeddings";
    const std::string positions =
        w_.Parameter(name + ".position_embeddings.weight", {size_.sequence, size_.hidden}, kSmall);
    std::string x = w_.Op("Add", name + ".typed",
                          {w_.Op("Gather", name + ".words", {words, ids}),
                           Embedding(w_, name + ".token_type_embeddings", types, 2, size_.hidden, kSmall)});
    x = w_.Op("Add", name + ".placed", {x, positions});
    return dropout_(name + ".dropout", Norm(name + ".LayerNorm", x));
  }

  // Post-norm, as in the paper: (B, T, C) -> (B, T, C).
  std::string Layer(const std::string& name, const std::string& x) {
    const std::string self = name + ".attention.self";
    const std::string mixed = attention_(self, Dense(self + ".query", x, 1, 1), Dense(self + ".key", x, 1, 1),
                                         Dense(self + ".value", x, 1, 1));
    const std::string y = Output(name + ".attention.output", mixed, 1, x);
    const std::string wide = w_.Op("Gelu", name + ".gelu", {Dense(name + ".intermediate.dense", y, 1, 4)});
    return Output(name + ".output", wide, 4, y);
  }

  // What ends both halves of a layer: to the layer's width, and onto the half's own input.
  std::string Output(const std::string& name, const std::string& x, int64_t inputs, const std::string& skip) {
    const std::string y = dropout_(name + ".dropout", Dense(name + ".dense", x, inputs, 1));
    return Norm(name + ".LayerNorm", w_.Op("Add", name + ".add", {y, skip}));
  }

  // Inputs and outputs in multiples of `hidden`.
  std::string Dense(const std::string& name, const std::string& x, int64_t inputs, int64_t outputs) {
    return Linear(w_, name, x, inputs * size_.hidden, outputs * size_.hidden, {kSmall, Initial{}});
  }

  std::string Norm(const std::string& name, const std::string& x) {
    return LayerNorm(w_, name, x, size_.hidden, kEpsilon);
  }

  ModelWriter& w_;
  const ModelSize& size_;
  const Dropout dropout_{w_, size_.dropout};
  const Attention attention_{w_, {size_.hidden, size_.heads, size_.sequence, false}, dropout_};
};

}  // namespace

absl::Status BuildBert(ModelWriter& writer, const ModelSize& size) {
  RETURN_IF_ERROR(CheckHeads(size.hidden, size.heads));
  Bert(writer, size).Build();
  return absl::OkStatus();
}

}  // namespace pipec::samples
