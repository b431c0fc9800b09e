#include "absl/strings/str_cat.h"
#include "samples/make-model/layers.h"
#include "samples/make-model/models.h"

namespace pipec::samples {

absl::Status BuildMlp(ModelWriter& writer, const ModelSize& size) {
  if (size.skips && size.layers < 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("--skips needs at least 4 layers, got --layers=", size.layers));
  }
  std::string x = writer.Input("x", onnx::TensorProto::FLOAT, {size.batch, size.inputs});
  // Activations after the first layer of each quarter, for --skips.
  std::vector<std::string> kept;
  const auto quarter = [&](int64_t k) { return k * size.layers / 4; };
  for (int64_t layer = 0; layer < size.layers; ++layer) {
    const bool last = layer == size.layers - 1;
    const int64_t inputs = layer == 0 ? size.inputs : size.hidden;
    const int64_t outputs = last ? size.classes : size.hidden;
    const std::string name = absl::StrCat("layers.", layer);
    if (size.skips) {
      const int sources = layer == quarter(2) ? 1 : layer == quarter(3) ? 2 : 0;
      for (int k = 0; k < sources; ++k) {
        // The neighbour's activation already is the input: adding it again would double it.
        if (kept[k] != x) x = writer.Op("Add", absl::StrCat(name, ".skip", k), {x, kept[k]});
      }
    }
    x = Gemm(writer, last ? "logits" : name + ".linear", name, x, inputs, outputs);
    if (!last) x = writer.Op("Relu", name + ".relu", {x});
    if (layer == quarter(0) || layer == quarter(1)) kept.push_back(x);
  }
  writer.Output(x, {size.batch, size.classes});
  return absl::OkStatus();
}

}  // namespace pipec::samples
