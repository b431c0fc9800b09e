#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "samples/make-model/attention.h"
#include "samples/make-model/layers.h"
#include "samples/make-model/models.h"

namespace pipec::samples {
namespace {

class Gpt {
 public:
  Gpt(ModelWriter& writer, const ModelSize& size) : w_(writer), size_(size) {}

  // (B, T) tokens -> (B, T, V) logits.
  void Build() {
    const int64_t hidden = size_.hidden;
    const std::string ids = w_.Input("input_ids", onnx::TensorProto::INT64, {size_.batch, size_.sequence});
    // Tied to the head, so it starts as a linear layer does; positions start small, as GPT-2's.
    const std::string wte =
        w_.Parameter("transformer.wte.weight", {size_.vocabulary, hidden}, LinearInitial(hidden));
    const std::string wpe =
        w_.Parameter("transformer.wpe.weight", {size_.sequence, hidden}, {Initial::kNormal, 0.02});
    std::string x = w_.Op("Add", "embedding", {w_.Op("Gather", "tokens", {wte, ids}), wpe});
    x = dropout_("drop", x);
    for (int64_t layer = 0; layer < size_.layers; ++layer)
      x = Block(absl::StrCat("transformer.h.", layer), x);
    x = LayerNorm(w_, "transformer.ln_f", x, hidden);
    w_.Op("MatMul", "logits", {x, Transposed(w_, "lm_head", wte, {1, 0})});
    w_.Output("logits", {size_.batch, size_.sequence, size_.vocabulary});
  }

 private:
  std::string Block(const std::string& name, std::string x) {
    x = w_.Op("Add", name + ".add_1",
              {x, SelfAttention(name + ".attn", LayerNorm(w_, name + ".ln_1", x, size_.hidden))});
    return w_.Op("Add", name + ".add_2",
                 {x, Mlp(name + ".mlp", LayerNorm(w_, name + ".ln_2", x, size_.hidden))});
  }

  // (B, T, C) -> (B, T, C).
  std::string SelfAttention(const std::string& name, const std::string& x) {
    const std::string qkv = Linear(w_, name + ".c_attn", x, size_.hidden, 3 * size_.hidden);
    onnx::NodeProto* split = w_.Node("Split", name + ".qkv", {qkv}, 3);
    ModelWriter::SetInt(split, "axis", 2);
    ModelWriter::SetInt(split, "num_outputs", 3);
    const std::string q = split->output(0), k = split->output(1), v = split->output(2);
    return dropout_(name + ".resid_dropout",
                    Linear(w_, name + ".c_proj", attention_(name, q, k, v), size_.hidden, size_.hidden));
  }

  std::string Mlp(const std::string& name, const std::string& x) {
    const std::string h =
        w_.Op("Gelu", name + ".gelu", {Linear(w_, name + ".c_fc", x, size_.hidden, 4 * size_.hidden)});
    return dropout_(name + ".dropout", Linear(w_, name + ".c_proj", h, 4 * size_.hidden, size_.hidden));
  }

  ModelWriter& w_;
  const ModelSize& size_;
  const Dropout dropout_{w_, size_.dropout};
  const Attention attention_{w_, {size_.hidden, size_.heads, size_.sequence, true}, dropout_};
};

}  // namespace

absl::Status BuildGpt(ModelWriter& writer, const ModelSize& size) {
  RETURN_IF_ERROR(CheckHeads(size.hidden, size.heads));
  Gpt(writer, size).Build();
  return absl::OkStatus();
}

}  // namespace pipec::samples
