// Multi-head attention of PyTorch's decoders and encoders, in plain operators.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "samples/make-model/layers.h"

namespace pipec::samples {

// InvalidArgument: the heads do not divide the features.
absl::Status CheckHeads(int64_t hidden, int64_t heads);

class Attention {
 public:
  struct Size {
    int64_t hidden, heads, sequence;
    bool causal;  // no token sees a later one
  };
  // Writes the constants that all layers share.
  Attention(ModelWriter& w, const Size& size, const Dropout& dropout);

  // softmax(q k' / sqrt(C / heads)) v, head by head: queries, keys and values (B, T, C) -> (B, T, C).
  std::string operator()(const std::string& name, const std::string& query, const std::string& key,
                         const std::string& value) const;

 private:
  std::string Heads(const std::string& name, const std::string& x, const std::vector<int64_t>& perm) const;

  ModelWriter& w_;
  const Dropout& dropout_;
  std::string mask_, minus_infinity_, scale_, split_heads_, merge_heads_;
};

}  // namespace pipec::samples
