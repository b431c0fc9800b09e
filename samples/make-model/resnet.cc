#include <cmath>

#include "absl/strings/str_cat.h"
#include "samples/make-model/layers.h"
#include "samples/make-model/models.h"

namespace pipec::samples {
namespace {

// Without bias; as torchvision starts it: He et al. 2015 ("Delving deep into rectifiers"), by the outputs.
std::string ResnetConvolution(ModelWriter& w, const std::string& name, const std::string& x, int64_t inputs,
                              int64_t outputs, const Window& window) {
  const double fan_out = static_cast<double>(outputs * window.size * window.size);
  return Convolution(w, name, x, inputs, outputs, window,
                     {{Initial::kNormal, std::sqrt(2 / fan_out)}, std::nullopt});
}

// (B, inputs, H, W) -> (B, outputs, H / stride, W / stride).
std::string BasicBlock(ModelWriter& w, const std::string& name, const std::string& x, int64_t inputs,
                       int64_t outputs, int64_t stride) {
  std::string y = ResnetConvolution(w, name + ".conv1", x, inputs, outputs, {.stride = stride});
  y = w.Op("Relu", name + ".relu1", {BatchNorm(w, name + ".bn1", y, outputs)});
  y = ResnetConvolution(w, name + ".conv2", y, outputs, outputs, {});
  y = BatchNorm(w, name + ".bn2", y, outputs);
  std::string skip = x;
  if (stride != 1 || inputs != outputs) {
    skip = ResnetConvolution(w, name + ".downsample.0", x, inputs, outputs,
                             {.size = 1, .stride = stride, .padding = 0});
    skip = BatchNorm(w, name + ".downsample.1", skip, outputs);
  }
  return w.Op("Relu", name + ".relu2", {w.Op("Add", name + ".add", {y, skip})});
}

}  // namespace

absl::Status BuildResnet(ModelWriter& w, const ModelSize& size) {
  const auto [image_channels, height, width] = size.image;
  std::string x = w.Input("x", onnx::TensorProto::FLOAT, {size.batch, image_channels, height, width});
  int64_t channels = size.hidden;
  x = ResnetConvolution(w, "conv1", x, image_channels, channels, {.size = 7, .stride = 2, .padding = 3});
  x = w.Op("Relu", "relu", {BatchNorm(w, "bn1", x, channels)});
  x = MaxPool(w, "maxpool", x, {.size = 3, .stride = 2, .padding = 1});
  for (int part = 1; part <= 4; ++part) {
    const int64_t outputs = size.hidden << (part - 1);
    for (int64_t block = 0; block < size.layers; ++block) {
      x = BasicBlock(w, absl::StrCat("layer", part, ".", block), x, channels, outputs,
                     part > 1 && block == 0 ? 2 : 1);
      channels = outputs;
    }
  }
  x = w.Op("Flatten", "flat", {w.Op("GlobalAveragePool", "avgpool", {x})});
  Gemm(w, "logits", "fc", x, channels, size.classes);
  w.Output("logits", {size.batch, size.classes});
  return absl::OkStatus();
}

}  // namespace pipec::samples
