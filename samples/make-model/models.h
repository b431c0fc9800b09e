// The models that make-model knows.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "samples/make-model/model_writer.h"

namespace pipec::samples {

struct ImageSize {
  int64_t channels = 0, height = 0, width = 0;
};

// What --layers and its neighbours say; 0: the kind's or the preset's own.
struct ModelSize {
  int64_t layers = 0;
  int64_t inputs = 0;
  ImageSize image;
  int64_t hidden = 0;
  int64_t classes = 0;
  int64_t heads = 0;
  int64_t sequence = 0;
  int64_t vocabulary = 0;
  int64_t batch = 0;  // -1: symbolic
  bool skips = false;
  double dropout = 0;
};

// The logits are class-last, as the default loss wants them. InvalidArgument: sizes that do not fit together,
// by flag.

// An MLP of `layers` linear layers with Relu between them: x float32 [batch, inputs] -> logits [batch,
// classes]. With `skips` the activation after the first quarter is added again before the third and the
// fourth, that of the second before the fourth: at four stages connections 0->2, 0->3 and 1->3.
absl::Status BuildMlp(ModelWriter& writer, const ModelSize& size);

// A VGG in small: x float32 [batch, C, H, W] -> logits [batch, classes]. `layers` 3x3 convolutions with Relu,
// the first with `hidden` channels; after every second one the image is halved and the channels double. One
// linear layer, with dropout before it. Parameter names as in torchvision's VGG: features.0.weight, ...
absl::Status BuildCnn(ModelWriter& writer, const ModelSize& size);

// A ResNet of basic blocks, `layers` in each of its four parts (2: ResNet-18), the first with `hidden`
// channels; names and initial values as in torchvision: x float32 [batch, C, H, W] -> logits [batch,
// classes]. BatchNormalization in training form.
absl::Status BuildResnet(ModelWriter& writer, const ModelSize& size);

// A U-Net for a class a pixel: x float32 [batch, C, H, W] -> logits [batch, H, W, classes]. `layers` halvings
// of the image, `hidden` channels at full size; two convolutions with BatchNormalization a level, transposed
// convolutions upwards. Parameter names of the widespread PyTorch one: inc.double_conv.0.weight, ...
absl::Status BuildUnet(ModelWriter& writer, const ModelSize& size);

// A language model of `layers` LSTMs: input_ids int64 [batch, sequence] -> logits [batch, sequence,
// vocabulary]. Parameter names and layouts as in PyTorch's word-language-model example: encoder, rnn (an
// nn.LSTM: weight_ih_l0, ...), decoder.
absl::Status BuildLstm(ModelWriter& writer, const ModelSize& size);

// A GPT-2-like decoder with nanoGPT's parameter names: input_ids int64 [batch, sequence] -> logits [batch,
// sequence, vocabulary]. Pre-norm blocks, causal attention, learned positions; the head is the token
// embedding.
absl::Status BuildGpt(ModelWriter& writer, const ModelSize& size);

// Hugging Face's BertForMaskedLM, names and initial values too: input_ids, token_type_ids int64 [batch,
// sequence] -> logits [batch, sequence, vocabulary]. Every token sees every other: no padding mask.
absl::Status BuildBert(ModelWriter& writer, const ModelSize& size);

// Hugging Face's LlamaForCausalLM, names and initial values too: input_ids int64 [batch, sequence] -> logits
// [batch, sequence, vocabulary]. A quarter of the heads, but one at least, are key-value heads; the inner
// layer of SwiGLU has 8/3 of `hidden`, rounded up to a multiple of 32. Opset 23.
absl::Status BuildLlama(ModelWriter& writer, const ModelSize& size);

}  // namespace pipec::samples
