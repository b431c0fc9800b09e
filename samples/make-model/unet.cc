#include <vector>

#include "absl/strings/str_cat.h"
#include "samples/make-model/layers.h"
#include "samples/make-model/models.h"

namespace pipec::samples {
namespace {

// Two 3x3 convolutions, each with BatchNormalization and Relu: (B, inputs, H, W) -> (B, outputs, H, W).
std::string DoubleConvolution(ModelWriter& w, const std::string& name, std::string x, int64_t inputs,
                              int64_t outputs) {
  for (int k : {0, 3}) {
    const Starts starts = {LinearInitial(inputs * 9), std::nullopt};
    x = Convolution(w, absl::StrCat(name, ".double_conv.", k), x, inputs, outputs, {}, starts);
    x = BatchNorm(w, absl::StrCat(name, ".double_conv.", k + 1), x, outputs);
    x = w.Op("Relu", absl::StrCat(name, ".double_conv.", k + 2), {x});
    inputs = outputs;
  }
  return x;
}

// (B, inputs, H, W) -> (B, inputs / 2, 2 H, 2 W).
std::string Doubled(ModelWriter& w, const std::string& name, const std::string& x, int64_t inputs) {
  // PyTorch counts what reaches an output from the wrong side of a transposed convolution: outputs, not inputs.
  const Initial start = LinearInitial(inputs / 2 * 4);
  onnx::NodeProto* node = w.Node("ConvTranspose", name,
                                 {x, w.Parameter(name + ".weight", {inputs, inputs / 2, 2, 2}, start),
                                  w.Parameter(name + ".bias", {inputs / 2}, start)});
  ModelWriter::SetInts(node, "kernel_shape", {2, 2});
  ModelWriter::SetInts(node, "strides", {2, 2});
  return node->output(0);
}

}  // namespace

absl::Status BuildUnet(ModelWriter& w, const ModelSize& size) {
  const auto [image_channels, height, width] = size.image;
  if (size.layers > 16 || height % (1 << size.layers) != 0 || width % (1 << size.layers) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--layers=", size.layers, " halvings do not divide the ",
                                                   height, "x", width, " of --image"));
  }
  std::string x = w.Input("x", onnx::TensorProto::FLOAT, {size.batch, image_channels, height, width});
  int64_t channels = size.hidden;
  x = DoubleConvolution(w, "inc", x, image_channels, channels);
  std::vector<std::string> kept;  // a level each, the full size first
  for (int64_t level = 1; level <= size.layers; ++level) {
    kept.push_back(x);
    const std::string name = absl::StrCat("down", level, ".maxpool_conv.");
    x = MaxPool(w, name + "0", x, {.size = 2, .stride = 2, .padding = 0});
    x = DoubleConvolution(w, name + "1", x, channels, 2 * channels);
    channels *= 2;
  }
  for (int64_t level = 1; level <= size.layers; ++level) {
    const std::string name = absl::StrCat("up", level);
    x = Doubled(w, name + ".up", x, channels);
    x = Concat(w, name + ".concat", {kept.back(), x}, 1);
    kept.pop_back();
    x = DoubleConvolution(w, name + ".conv", x, channels, channels / 2);
    channels /= 2;
  }
  x = Convolution(w, "outc.conv", x, channels, size.classes, {.size = 1, .padding = 0},
                  LinearStarts(channels));
  onnx::NodeProto* class_last = w.Node("Transpose", "logits", {x});
  ModelWriter::SetInts(class_last, "perm", {0, 2, 3, 1});
  w.Output("logits", {size.batch, height, width, size.classes});
  return absl::OkStatus();
}

}  // namespace pipec::samples
