// The kinds of models, their sizes, and the presets.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "samples/make-model/models.h"

namespace pipec::samples {

// A size that is a whole number.
struct SizeFlag {
  const char* name;
  int64_t ModelSize::*field;
  const char* help;
};
absl::Span<const SizeFlag> SizeFlags();

struct Kind {
  const char* name;
  absl::Status (*build)(ModelWriter& writer, const ModelSize& size);
  ModelSize defaults;                   // a size of 0 is one that the kind does not have
  bool skips = false, dropout = false;  // whether it knows them
};
absl::Span<const Kind> Kinds();

struct Preset {
  const char* name;
  const char* kind;
  ModelSize size;
};
absl::Span<const Preset> Presets();

// InvalidArgument: unknown, with the known ones.
absl::StatusOr<const Kind*> FindKind(const std::string& name);

// What of `size` is 0 becomes the preset's size or, if `preset` is "", the kind's. InvalidArgument: the preset
// is of another kind, or `size` says something that the kind does not have.
absl::StatusOr<ModelSize> Complete(const Kind& kind, const std::string& preset, ModelSize size);

}  // namespace pipec::samples
