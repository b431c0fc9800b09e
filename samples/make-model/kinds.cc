#include "samples/make-model/kinds.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace pipec::samples {
namespace {

const SizeFlag kSizeFlags[] = {
    {"layers", &ModelSize::layers,
     "layers or blocks; resnet: blocks in each of its four parts; unet: halvings"},
    {"hidden", &ModelSize::hidden, "features of a layer; of convolutions: channels of the first"},
    {"inputs", &ModelSize::inputs, "mlp: features of a sample"},
    {"classes", &ModelSize::classes, "classes of a sample; unet: of a pixel"},
    {"heads", &ModelSize::heads, "attention heads; llama: a quarter of them are key-value heads"},
    {"sequence", &ModelSize::sequence, "tokens of a sample"},
    {"vocabulary", &ModelSize::vocabulary, "different tokens"},
};

const ModelSize kAttention = {.layers = 4, .hidden = 128, .heads = 4, .sequence = 64, .vocabulary = 128};

const Kind kKinds[] = {
    {.name = "mlp",
     .build = BuildMlp,
     .defaults = {.layers = 4, .inputs = 64, .hidden = 64, .classes = 10},
     .skips = true},
    {.name = "cnn",
     .build = BuildCnn,
     .defaults = {.layers = 4, .image = {1, 8, 8}, .hidden = 32, .classes = 10},
     .dropout = true},
    {.name = "resnet",
     .build = BuildResnet,
     .defaults = {.layers = 1, .image = {3, 32, 32}, .hidden = 16, .classes = 10}},
    {.name = "unet",
     .build = BuildUnet,
     .defaults = {.layers = 2, .image = {3, 32, 32}, .hidden = 16, .classes = 2}},
    {.name = "lstm",
     .build = BuildLstm,
     .defaults = {.layers = 2, .hidden = 128, .sequence = 64, .vocabulary = 128},
     .dropout = true},
    {.name = "gpt", .build = BuildGpt, .defaults = kAttention, .dropout = true},
    {.name = "bert", .build = BuildBert, .defaults = kAttention, .dropout = true},
    {.name = "llama", .build = BuildLlama, .defaults = kAttention},
};

const Preset kPresets[] = {
    {"gpt-tiny", "gpt", {.layers = 4, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 128}},
    {"gpt-6", "gpt", {.layers = 6, .hidden = 384, .heads = 6, .sequence = 256, .vocabulary = 256}},
    {"gpt-124m", "gpt", {.layers = 12, .hidden = 768, .heads = 12, .sequence = 1024, .vocabulary = 50257}},
    {"gpt-3", "gpt", {.layers = 96, .hidden = 12288, .heads = 96, .sequence = 2048, .vocabulary = 50257}},
    {"llama-tiny", "llama", {.layers = 4, .hidden = 256, .heads = 8, .sequence = 128, .vocabulary = 512}},
    {"bert-6", "bert", {.layers = 6, .hidden = 384, .heads = 6, .sequence = 128, .vocabulary = 8192}},
    {"lstm-2", "lstm", {.layers = 2, .hidden = 256, .sequence = 64, .vocabulary = 256}},
    {"resnet18-64", "resnet", {.layers = 2, .image = {3, 64, 64}, .hidden = 64, .classes = 10, .batch = 8}},
    {"unet-64", "unet", {.layers = 3, .image = {3, 64, 64}, .hidden = 32, .classes = 2}},
};

absl::Status HasNo(const Kind& kind, absl::string_view flag) {
  std::vector<std::string> known;
  for (const SizeFlag& size : kSizeFlags) {
    if (kind.defaults.*size.field != 0) known.push_back(absl::StrCat("--", size.name));
  }
  if (kind.defaults.image.channels != 0) known.push_back("--image");
  if (kind.skips) known.push_back("--skips");
  if (kind.dropout) known.push_back("--dropout");
  return absl::InvalidArgumentError(
      absl::StrCat(kind.name, " has no --", flag, "; it has ", absl::StrJoin(known, ", "), ", --batch"));
}

}  // namespace

absl::Span<const SizeFlag> SizeFlags() { return kSizeFlags; }
absl::Span<const Kind> Kinds() { return kKinds; }
absl::Span<const Preset> Presets() { return kPresets; }

absl::StatusOr<const Kind*> FindKind(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown kind '", name, "'; there are ",
      absl::StrJoin(kKinds, ", ", [](std::string* out, const Kind& k) { out->append(k.name); })));
}

absl::StatusOr<ModelSize> Complete(const Kind& kind, const std::string& preset, ModelSize size) {
  ModelSize defaults = kind.defaults;
  for (const Preset& known : kPresets) {
    if (preset != known.name) continue;
    if (std::string(kind.name) != known.kind) {
      return absl::InvalidArgumentError(
          absl::StrCat("--preset=", preset, " is a ", known.kind, ", not a ", kind.name));
    }
    defaults = known.size;
  }
  for (const SizeFlag& flag : kSizeFlags) {
    if (kind.defaults.*flag.field == 0 && size.*flag.field != 0) return HasNo(kind, flag.name);
    if (size.*flag.field == 0) size.*flag.field = defaults.*flag.field;
  }
  if (kind.defaults.image.channels == 0 && size.image.channels != 0) return HasNo(kind, "image");
  if (size.image.channels == 0) size.image = defaults.image;
  if (size.skips && !kind.skips) return HasNo(kind, "skips");
  if (size.dropout > 0 && !kind.dropout) return HasNo(kind, "dropout");
  if (size.batch == 0) size.batch = defaults.batch == 0 ? 1 : defaults.batch;
  return size;
}

}  // namespace pipec::samples
