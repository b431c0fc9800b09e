#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "samples/make-model/attention.h"
#include "samples/make-model/layers.h"
#include "samples/make-model/models.h"

namespace pipec::samples {
namespace {

// Hugging Face's.
constexpr Initial kSmall = {Initial::kNormal, 0.02};
constexpr float kEpsilon = 1e-6f;
constexpr double kRotaryBase = 10000;

class Llama {
 public:
  Llama(ModelWriter& writer, const ModelSize& size, int64_t key_value_heads)
      : w_(writer), size_(size), key_value_heads_(key_value_heads), head_(size.hidden / size.heads) {}

  // (B, T) tokens -> (B, T, V) logits.
  void Build() {
    // RMSNormalization, RotaryEmbedding, Attention.
    w_.SetOpset(23);
    const std::string ids = w_.Input("input_ids", onnx::TensorProto::INT64, {size_.batch, size_.sequence});
    MakeRotation(ids);
    std::string x = Embedding(w_, "model.embed_tokens", ids, size_.vocabulary, size_.hidden, kSmall);
    for (int64_t layer = 0; layer < size_.layers; ++layer) x = Layer(absl::StrCat("model.layers.", layer), x);
    const std::string head = w_.Parameter("lm_head.weight", {size_.vocabulary, size_.hidden}, kSmall);
    w_.Op("MatMul", "logits", {Norm("model.norm", x), Transposed(w_, "lm_head", head, {1, 0})});
    w_.Output("logits", {size_.batch, size_.sequence, size_.vocabulary});
  }

 private:
  // Positions (B, T), and cosines and sines [T, D / 2] by position.
  void MakeRotation(const std::string& ids) {
    std::vector<int64_t> places(size_.sequence);
    std::iota(places.begin(), places.end(), 0);
    positions_ = w_.Op("Expand", "position_ids",
                       {w_.IntsConstant("places", places), w_.Op("Shape", "input_ids.shape", {ids})});
    std::vector<float> cosines, sines;
    for (int64_t place : places) {
      for (int64_t k = 0; k < head_ / 2; ++k) {
        const double angle =
            static_cast<double>(place) *
            std::pow(kRotaryBase, -2.0 * static_cast<double>(k) / static_cast<double>(head_));
        cosines.push_back(static_cast<float>(std::cos(angle)));
        sines.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    cosines_ = w_.FloatsConstant("rotary_cosines", {size_.sequence, head_ / 2}, cosines);
    sines_ = w_.FloatsConstant("rotary_sines", {size_.sequence, head_ / 2}, sines);
  }

  // (B, T, C) -> (B, T, C).
  std::string Layer(const std::string& name, std::string x) {
    x = w_.Op("Add", name + ".add_1",
              {x, SelfAttention(name + ".self_attn", Norm(name + ".input_layernorm", x))});
    return w_.Op("Add", name + ".add_2",
                 {x, SwiGlu(name + ".mlp", Norm(name + ".post_attention_layernorm", x))});
  }

  std::string SelfAttention(const std::string& name, const std::string& x) {
    const std::string q = Projected(name + ".q_proj", x, size_.hidden, size_.hidden);
    const std::string k = Projected(name + ".k_proj", x, size_.hidden, key_value_heads_ * head_);
    const std::string v = Projected(name + ".v_proj", x, size_.hidden, key_value_heads_ * head_);
    onnx::NodeProto* attention =
        w_.Node("Attention", name + ".attention",
                {Rotated(name + ".q", q, size_.heads), Rotated(name + ".k", k, key_value_heads_), v});
    ModelWriter::SetInt(attention, "is_causal", 1);
    ModelWriter::SetInt(attention, "q_num_heads", size_.heads);
    ModelWriter::SetInt(attention, "kv_num_heads", key_value_heads_);
    return Projected(name + ".o_proj", attention->output(0), size_.hidden, size_.hidden);
  }

  std::string Rotated(const std::string& name, const std::string& x, int64_t heads) {
    onnx::NodeProto* node = w_.Node("RotaryEmbedding", name, {x, cosines_, sines_, positions_});
    ModelWriter::SetInt(node, "num_heads", heads);
    return node->output(0);
  }

  // down(silu(gate(x)) * up(x)); Shazeer 2020, "GLU variants improve transformer".
  std::string SwiGlu(const std::string& name, const std::string& x) {
    const int64_t inner = (8 * size_.hidden / 3 + 31) / 32 * 32;
    const std::string gate = Projected(name + ".gate_proj", x, size_.hidden, inner);
    const std::string silu =
        w_.Op("Mul", name + ".silu", {gate, w_.Op("Sigmoid", name + ".sigmoid", {gate})});
    const std::string up = Projected(name + ".up_proj", x, size_.hidden, inner);
    return Projected(name + ".down_proj", w_.Op("Mul", name + ".gated", {silu, up}), inner, size_.hidden);
  }

  std::string Projected(const std::string& name, const std::string& x, int64_t inputs, int64_t outputs) {
    return Linear(w_, name, x, inputs, outputs, {kSmall, std::nullopt});
  }

  std::string Norm(const std::string& name, const std::string& x) {
    onnx::NodeProto* node = w_.Node("RMSNormalization", name,
                                    {x, w_.Parameter(name + ".weight", {size_.hidden}, {Initial::kOnes})});
    ModelWriter::SetFloat(node, "epsilon", kEpsilon);
    return node->output(0);
  }

  ModelWriter& w_;
  const ModelSize& size_;
  const int64_t key_value_heads_, head_;
  std::string positions_, cosines_, sines_;
};

}  // namespace

absl::Status BuildLlama(ModelWriter& writer, const ModelSize& size) {
  RETURN_IF_ERROR(CheckHeads(size.hidden, size.heads));
  const int64_t key_value_heads = std::max<int64_t>(1, size.heads / 4);
  if (size.heads % key_value_heads != 0 || size.hidden / size.heads % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--heads=", size.heads, " of --hidden=", size.hidden,
        ": above 7 heads their number must be a multiple of 4, and a head's features are turned in pairs"));
  }
  Llama(writer, size, key_value_heads).Build();
  return absl::OkStatus();
}

}  // namespace pipec::samples
