// make-model: ONNX models for samples, tests and benches, with PyTorch's default initialisation and parameter
// names.
#include <iostream>
#include <new>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"
#include "samples/make-model/models.h"
#include "tools/support/flags.h"

namespace pipec::samples {
namespace {

struct Preset {
  const char* name;
  const char* kind;
  ModelSize size;
};

const Preset kPresets[] = {
    {"gpt-tiny", "gpt", {.layers = 4, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 128}},
    {"gpt-6", "gpt", {.layers = 6, .hidden = 384, .heads = 6, .sequence = 256, .vocabulary = 256}},
    {"gpt-124m", "gpt", {.layers = 12, .hidden = 768, .heads = 12, .sequence = 1024, .vocabulary = 50257}},
    {"gpt-3", "gpt", {.layers = 96, .hidden = 12288, .heads = 96, .sequence = 2048, .vocabulary = 50257}},
};

struct Kind {
  const char* name;
  ModelSize defaults;
  absl::Status (*build)(ModelWriter& writer, const ModelSize& size);
};

const Kind kKinds[] = {
    {"mlp", {.layers = 4, .inputs = 64, .hidden = 64, .classes = 10}, BuildMlp},
    {"gpt", {.layers = 4, .hidden = 128, .heads = 4, .sequence = 64, .vocabulary = 128}, BuildGpt},
};

constexpr int64_t ModelSize::*kSizes[] = {&ModelSize::layers,    &ModelSize::inputs, &ModelSize::hidden,
                                          &ModelSize::classes,   &ModelSize::heads,  &ModelSize::sequence,
                                          &ModelSize::vocabulary};

// So that no product of two sizes leaves the range of 64 bits.
constexpr int64_t kLargest = 1 << 24;

absl::Status Make(const std::string& kind_name, const std::string& preset_name, ModelSize size,
                  const WriterOptions& options, const std::string& file) {
  const Kind* kind = nullptr;
  for (const Kind& k : kKinds) {
    if (kind_name == k.name) kind = &k;
  }
  if (!kind) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown kind '", kind_name, "'; there are ",
        absl::StrJoin(kKinds, ", ", [](std::string* out, const Kind& k) { out->append(k.name); })));
  }
  ModelSize defaults = kind->defaults;
  for (const Preset& preset : kPresets) {
    if (preset_name != preset.name) continue;
    if (kind_name != preset.kind) {
      return absl::InvalidArgumentError(
          absl::StrCat("--preset=", preset_name, " is a ", preset.kind, ", not a ", kind_name));
    }
    defaults = preset.size;
  }
  for (int64_t ModelSize::*field : kSizes) {
    if (size.*field == 0) size.*field = defaults.*field;
  }
  ModelWriter writer(preset_name.empty() ? kind_name : preset_name, options);
  RETURN_IF_ERROR(kind->build(writer, size));
  return writer.Write(file);
}

int Main(int argc, char** argv) {
  std::string kind, preset, file, batch = "1";
  ModelSize size;
  int64_t seed = 0;
  WriterOptions options;
  std::vector<std::string> presets;
  for (const Preset& p : kPresets) presets.push_back(p.name);

  FlagTable table("make-model", "mlp|gpt -o FILE [flags]",
                  "make an ONNX model for samples, tests and benches");
  table.Positional("mlp|gpt", &kind);
  table.Group("Result");
  table.String("o", "FILE", &file, "the model; above 1 GB its parameters lie in FILE.data", "KIND.onnx");
  table.Int("seed", "N", &seed, 0, "of the initial values");
  table.OnOff("no-weights", &options.no_weights, "parameters without contents: for planning only");
  table.Group("Size");
  table.Choice("preset", &preset, presets, "the sizes of a known model; the other flags change it");
  const std::string own = "the kind's or preset's";
  table.Int("layers", "N", &size.layers, 1, "linear layers, or blocks", own);
  table.Int("hidden", "N", &size.hidden, 1, "features of a layer", own);
  table.Int("inputs", "N", &size.inputs, 1, "mlp: features of a sample", own);
  table.Int("classes", "N", &size.classes, 1, "mlp: classes", own);
  table.OnOff("skips", &size.skips, "mlp: residual connections over a quarter and more of the layers");
  table.Int("heads", "N", &size.heads, 1, "gpt: attention heads", own);
  table.Int("sequence", "N", &size.sequence, 1, "gpt: tokens of a sample", own);
  table.Int("vocabulary", "N", &size.vocabulary, 1, "gpt: different tokens", own);
  table.Double("dropout", "RATIO", &size.dropout, 0, "gpt: share of activations dropped in training");
  table.String("batch", "N|symbolic", &batch, "samples of a microbatch");
  table.Check([&] {
    if (batch == "symbolic") {
      size.batch = -1;
    } else if (!absl::SimpleAtoi(batch, &size.batch) || size.batch < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--batch: '", batch, "' is neither a number above 0 nor symbolic"));
    }
    for (int64_t ModelSize::*field : kSizes) {
      if (size.*field > kLargest) {
        return absl::InvalidArgumentError(absl::StrCat("--layers, --hidden, ...: ", size.*field, " is above ", kLargest));
      }
    }
    if (size.dropout >= 1) return absl::InvalidArgumentError("--dropout: must be below 1");
    return absl::OkStatus();
  });
  if (const std::optional<int> exit = table.Parse(argc, argv)) return *exit;

  options.seed = seed;
  if (file.empty()) file = kind + ".onnx";
  try {
    if (absl::Status status = Make(kind, preset, size, options, file); !status.ok())
      return Refuse("make-model", status);
  } catch (const std::exception&) {
    return Refuse("make-model", absl::ResourceExhaustedError(
                                    "the contents do not fit into memory; --no-weights leaves them out"));
  }
  return Done("make-model");
}

}  // namespace
}  // namespace pipec::samples

int main(int argc, char** argv) { return pipec::samples::Main(argc, argv); }
