// make-model: ONNX models for samples, tests and benches, with PyTorch's default initialisation and parameter
// names.
#include <iostream>
#include <new>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status.h"
#include "samples/make-model/kinds.h"
#include "tools/support/flags.h"

namespace pipec::samples {
namespace {

// So that no product of two sizes leaves the range of 64 bits.
constexpr int64_t kLargest = 1 << 24;

absl::StatusOr<ImageSize> ParseImage(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, 'x');
  ImageSize image;
  int64_t* const sizes[] = {&image.channels, &image.height, &image.width};
  bool good = parts.size() == 3;
  for (size_t k = 0; good && k < 3; ++k) {
    good = absl::SimpleAtoi(parts[k], sizes[k]) && *sizes[k] >= 1 && *sizes[k] <= 1 << 16;
  }
  if (good) return image;
  return absl::InvalidArgumentError(
      absl::StrCat("--image: '", text, "' is no CxHxW of numbers from 1 to 65536, as in 3x64x64"));
}

absl::Status Make(const std::string& kind_name, const std::string& preset, const ModelSize& given,
                  const WriterOptions& options, const std::string& file, Written* written) {
  ASSIGN_OR_RETURN(const Kind* kind, FindKind(kind_name));
  ASSIGN_OR_RETURN(const ModelSize size, Complete(*kind, preset, given));
  ModelWriter writer(preset.empty() ? kind_name : preset, options);
  RETURN_IF_ERROR(kind->build(writer, size));
  return writer.Write(file, written);
}

int Main(int argc, char** argv) {
  std::string kind, preset, file, image, batch;
  ModelSize size;
  int64_t seed = 0;
  WriterOptions options;
  std::vector<std::string> presets, kinds;
  for (const Preset& p : Presets()) presets.push_back(p.name);
  for (const Kind& k : Kinds()) kinds.push_back(k.name);
  const std::string any_kind = absl::StrJoin(kinds, "|");

  FlagTable table("make-model", any_kind + " -o FILE [flags]",
                  "make an ONNX model for samples, tests and benches");
  table.Positional(any_kind, &kind);
  table.Group("Result");
  table.String("o", "FILE", &file, "the model; above 1 GB its parameters lie in FILE.data", "KIND.onnx");
  table.Int("seed", "N", &seed, 0, "of the initial values");
  table.OnOff("no-weights", &options.no_weights, "parameters without contents: for planning only");
  table.Group("Size");
  table.Choice("preset", &preset, presets, "the sizes of a known model; the other flags change it");
  const std::string own = "the kind's or preset's";
  for (const SizeFlag& flag : SizeFlags()) table.Int(flag.name, "N", &(size.*flag.field), 1, flag.help, own);
  table.String("image", "CxHxW", &image, "cnn, resnet, unet: channels, height and width of a sample", own);
  table.OnOff("skips", &size.skips, "mlp: residual connections over a quarter and more of the layers");
  table.Double("dropout", "RATIO", &size.dropout, 0,
               "cnn, lstm, gpt, bert: share of activations dropped in training");
  table.String("batch", "N|symbolic", &batch, "samples of a microbatch", "the preset's, else 1");
  table.Check([&]() -> absl::Status {
    if (batch == "symbolic") {
      size.batch = -1;
    } else if (!batch.empty() && (!absl::SimpleAtoi(batch, &size.batch) || size.batch < 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--batch: '", batch, "' is neither a number above 0 nor symbolic"));
    }
    if (!image.empty()) {
      ASSIGN_OR_RETURN(size.image, ParseImage(image));
    }
    for (const SizeFlag& flag : SizeFlags()) {
      if (size.*flag.field > kLargest) {
        return absl::InvalidArgumentError(
            absl::StrCat("--", flag.name, ": ", size.*flag.field, " is above ", kLargest));
      }
    }
    if (size.dropout >= 1) return absl::InvalidArgumentError("--dropout: must be below 1");
    return absl::OkStatus();
  });
  if (const std::optional<int> exit = table.Parse(argc, argv)) return *exit;

  options.seed = seed;
  if (file.empty()) file = kind + ".onnx";
  Written written;
  try {
    if (absl::Status status = Make(kind, preset, size, options, file, &written); !status.ok())
      return Refuse("make-model", status);
  } catch (const std::exception&) {
    return Refuse("make-model", absl::ResourceExhaustedError(
                                    "the contents do not fit into memory; --no-weights leaves them out"));
  }
  std::cerr << written.lines();
  return Done("make-model");
}

}  // namespace
}  // namespace pipec::samples

int main(int argc, char** argv) { return pipec::samples::Main(argc, argv); }
