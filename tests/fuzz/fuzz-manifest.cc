// A plan's manifest -> a refusal, or a manifest that is the same written and read again.
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/plan/manifest.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<pipec::Manifest> manifest = pipec::ParseManifest(text);
  if (!manifest.ok()) return 0;
  pipec::Require(pipec::IsManifestOfAnyVersion(text));
  const std::string written = pipec::ToJson(*manifest);
  const absl::StatusOr<pipec::Manifest> again = pipec::ParseManifest(written);
  pipec::Require(again.ok() && pipec::ToJson(*again) == written);
  return 0;
}
