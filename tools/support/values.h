// Values of flags as text.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipec {

// "8TB", "64kB" or "64KB" (powers of 1000), "512MiB" (powers of 1024), "1000": bytes. InvalidArgument names the
// units there are.
absl::StatusOr<int64_t> ParseSize(absl::string_view text);

}  // namespace pipec
