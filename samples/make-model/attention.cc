#include "samples/make-model/attention.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace pipec::samples {

absl::Status CheckHeads(int64_t hidden, int64_t heads) {
  if (hidden % heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--hidden=", hidden, " is not a multiple of --heads=", heads));
}

Attention::Attention(ModelWriter& w, const Size& size, const Dropout& dropout) : w_(w), dropout_(dropout) {
  const int64_t features = size.hidden / size.heads;
  if (size.causal) {
    mask_ = w_.CausalMask("causal_mask", size.sequence);
    minus_infinity_ = w_.ScalarConstant("minus_infinity", -std::numeric_limits<float>::infinity());
  }
  scale_ = w_.ScalarConstant("attention_scale", 1.0f / std::sqrt(static_cast<float>(features)));
  split_heads_ = w_.IntsConstant("split_heads", {0, 0, size.heads, features});
  merge_heads_ = w_.IntsConstant("merge_heads", {0, 0, size.hidden});
}

std::string Attention::operator()(const std::string& name, const std::string& query, const std::string& key,
                                  const std::string& value) const {
  // Heads H of size D.
  const std::string q = Heads(name + ".q", query, {0, 2, 1, 3});  // (B, H, T, D)
  const std::string k = Heads(name + ".k", key, {0, 2, 3, 1});    // (B, H, D, T)
  const std::string v = Heads(name + ".v", value, {0, 2, 1, 3});
  std::string scores = w_.Op("Mul", name + ".scores", {w_.Op("MatMul", name + ".qk", {q, k}), scale_});
  if (!mask_.empty()) scores = w_.Op("Where", name + ".masked", {mask_, scores, minus_infinity_});
  onnx::NodeProto* softmax = w_.Node("Softmax", name + ".softmax", {scores});
  ModelWriter::SetInt(softmax, "axis", -1);
  const std::string weights = dropout_(name + ".attn_dropout", softmax->output(0));
  const std::string mixed =
      Transposed(w_, name + ".mixed", w_.Op("MatMul", name + ".av", {weights, v}), {0, 2, 1, 3});
  return w_.Op("Reshape", name + ".merged", {mixed, merge_heads_});
}

std::string Attention::Heads(const std::string& name, const std::string& x,
                             const std::vector<int64_t>& perm) const {
  return Transposed(w_, name, w_.Op("Reshape", name + ".heads", {x, split_heads_}), perm);
}

}  // namespace pipec::samples
