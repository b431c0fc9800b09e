#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
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
    mask_ = w_.CausalMask("causal_mask", size_.sequence);
    minus_infinity_ = w_.ScalarConstant("minus_infinity", -std::numeric_limits<float>::infinity());
    scale_ = w_.ScalarConstant("attention_scale", 1.0f / std::sqrt(static_cast<float>(hidden / size_.heads)));
    split_heads_ = w_.IntsConstant("split_heads", {0, 0, size_.heads, hidden / size_.heads});
    merge_heads_ = w_.IntsConstant("merge_heads", {0, 0, hidden});
    if (size_.dropout > 0) {
      ratio_ = w_.ScalarConstant("dropout_ratio", static_cast<float>(size_.dropout));
      training_ = w_.BoolConstant("dropout_training", true);
    }
    std::string x = w_.Op("Add", "embedding", {w_.Op("Gather", "tokens", {wte, ids}), wpe});
    x = Dropout("drop", x);
    for (int64_t layer = 0; layer < size_.layers; ++layer)
      x = Block(absl::StrCat("transformer.h.", layer), x);
    x = Norm("transformer.ln_f", x);
    w_.Op("MatMul", "logits", {x, Transposed("lm_head", wte, {1, 0})});
    w_.Output("logits", {size_.batch, size_.sequence, size_.vocabulary});
  }

 private:
  std::string Block(const std::string& name, std::string x) {
    x = w_.Op("Add", name + ".add_1", {x, Attention(name + ".attn", Norm(name + ".ln_1", x))});
    return w_.Op("Add", name + ".add_2", {x, Mlp(name + ".mlp", Norm(name + ".ln_2", x))});
  }

  // (B, T, C) -> (B, T, C), heads H of size D = C / H.
  std::string Attention(const std::string& name, const std::string& x) {
    const std::string qkv = Linear(name + ".c_attn", x, size_.hidden, 3 * size_.hidden);
    onnx::NodeProto* split = w_.Node("Split", name + ".qkv", {qkv}, 3);
    ModelWriter::SetInt(split, "axis", 2);
    ModelWriter::SetInt(split, "num_outputs", 3);
    const std::string q = Heads(name + ".q", split->output(0), {0, 2, 1, 3});  // (B, H, T, D)
    const std::string k = Heads(name + ".k", split->output(1), {0, 2, 3, 1});  // (B, H, D, T)
    const std::string v = Heads(name + ".v", split->output(2), {0, 2, 1, 3});
    const std::string scores =
        w_.Op("Mul", name + ".scores", {w_.Op("MatMul", name + ".qk", {q, k}), scale_});
    const std::string masked = w_.Op("Where", name + ".masked", {mask_, scores, minus_infinity_});
    onnx::NodeProto* softmax = w_.Node("Softmax", name + ".softmax", {masked});
    ModelWriter::SetInt(softmax, "axis", -1);
    const std::string weights = Dropout(name + ".attn_dropout", softmax->output(0));
    const std::string mixed =
        Transposed(name + ".mixed", w_.Op("MatMul", name + ".av", {weights, v}), {0, 2, 1, 3});
    const std::string merged = w_.Op("Reshape", name + ".merged", {mixed, merge_heads_});
    return Dropout(name + ".resid_dropout", Linear(name + ".c_proj", merged, size_.hidden, size_.hidden));
  }

  std::string Mlp(const std::string& name, const std::string& x) {
    const std::string h =
        w_.Op("Gelu", name + ".gelu", {Linear(name + ".c_fc", x, size_.hidden, 4 * size_.hidden)});
    return Dropout(name + ".dropout", Linear(name + ".c_proj", h, 4 * size_.hidden, size_.hidden));
  }

  // nn.Linear on three axes, as exporters write it: the weight is [outputs, inputs].
  std::string Linear(const std::string& name, const std::string& x, int64_t inputs, int64_t outputs) {
    const std::string weight = w_.Parameter(name + ".weight", {outputs, inputs}, LinearInitial(inputs));
    const std::string bias = w_.Parameter(name + ".bias", {outputs}, LinearInitial(inputs));
    return w_.Op("Add", name,
                 {w_.Op("MatMul", name + ".matmul", {x, Transposed(name, weight, {1, 0})}), bias});
  }

  std::string Norm(const std::string& name, const std::string& x) {
    onnx::NodeProto* node = w_.Node("LayerNormalization", name,
                                    {x, w_.Parameter(name + ".weight", {size_.hidden}, {Initial::kOnes}),
                                     w_.Parameter(name + ".bias", {size_.hidden}, {Initial::kZeros})});
    ModelWriter::SetInt(node, "axis", -1);
    return node->output(0);
  }

  std::string Heads(const std::string& name, const std::string& x, const std::vector<int64_t>& perm) {
    return Transposed(name, w_.Op("Reshape", name + ".heads", {x, split_heads_}), perm);
  }

  std::string Transposed(const std::string& name, const std::string& x, const std::vector<int64_t>& perm) {
    onnx::NodeProto* node = w_.Node("Transpose", name + ".transposed", {x});
    ModelWriter::SetInts(node, "perm", perm);
    return node->output(0);
  }

  std::string Dropout(const std::string& name, const std::string& x) {
    return size_.dropout > 0 ? w_.Op("Dropout", name, {x, ratio_, training_}) : x;
  }

  ModelWriter& w_;
  const ModelSize& size_;
  std::string mask_, minus_infinity_, scale_, split_heads_, merge_heads_, ratio_, training_;
};

}  // namespace

absl::Status BuildGpt(ModelWriter& writer, const ModelSize& size) {
  if (size.hidden % size.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hidden=", size.hidden, " is not a multiple of --heads=", size.heads));
  }
  Gpt(writer, size).Build();
  return absl::OkStatus();
}

}  // namespace pipec::samples
