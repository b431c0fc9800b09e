// The models that make-model knows.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "samples/make-model/model_writer.h"

namespace pipec::samples {

// What --layers and its neighbours say; 0: the kind's or the preset's own.
struct ModelSize {
  int64_t layers = 0;
  int64_t inputs = 0;
  int64_t hidden = 0;
  int64_t classes = 0;
  int64_t heads = 0;
  int64_t sequence = 0;
  int64_t vocabulary = 0;
  bool skips = false;
  double dropout = 0;
  int64_t batch = 1;  // -1: symbolic
};

// An MLP of `layers` linear layers with Relu between them: x float32 [batch, inputs] -> logits [batch,
// classes]. With `skips` the activation after the first quarter is added again before the third and the
// fourth, that of the second before the fourth: at four stages connections 0->2, 0->3 and 1->3.
absl::Status BuildMlp(ModelWriter& writer, const ModelSize& size);

// A GPT-2-like decoder with nanoGPT's parameter names: input_ids int64 [batch, sequence] -> logits [batch,
// sequence, vocabulary]. Pre-norm blocks, causal attention, learned positions; the head is the token
// embedding.
absl::Status BuildGpt(ModelWriter& writer, const ModelSize& size);

}  // namespace pipec::samples
