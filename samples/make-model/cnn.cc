#include "absl/strings/str_cat.h"
#include "samples/make-model/layers.h"
#include "samples/make-model/models.h"

namespace pipec::samples {

absl::Status BuildCnn(ModelWriter& w, const ModelSize& size) {
  auto [channels, height, width] = size.image;
  std::string x = w.Input("x", onnx::TensorProto::FLOAT, {size.batch, channels, height, width});
  const Dropout dropout(w, size.dropout);
  // The place of the next module in PyTorch's nn.Sequential.
  int place = 0;
  const auto next = [&place] { return absl::StrCat("features.", place++); };
  for (int64_t layer = 0, outputs = size.hidden; layer < size.layers; ++layer) {
    x = Convolution(w, next(), x, channels, outputs, {}, LinearStarts(channels * 9));
    x = w.Op("Relu", next(), {x});
    channels = outputs;
    if (layer % 2 == 0) continue;
    if (height % 2 != 0 || width % 2 != 0) {
      return absl::InvalidArgumentError(absl::StrCat("--layers=", size.layers,
                                                     " halves the image more often than ", size.image.height,
                                                     "x", size.image.width,
                                                     " (--image) allows; "
                                                     "--layers=",
                                                     layer, " fits"));
    }
    x = MaxPool(w, next(), x, {.size = 2, .stride = 2, .padding = 0});
    height /= 2, width /= 2, outputs *= 2;
  }
  x = dropout("dropout", w.Op("Flatten", "flat", {x}));
  Gemm(w, "logits", "classifier", x, channels * height * width, size.classes);
  w.Output("logits", {size.batch, size.classes});
  return absl::OkStatus();
}

}  // namespace pipec::samples
