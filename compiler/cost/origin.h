// Where a figure comes from.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace pipec {

// Modelled: from published rates. Fitted: from a law fitted to what was measured of other shapes. Measured: of this
// very thing.
enum class Origin : uint8_t { kModelled, kFitted, kMeasured };

inline absl::string_view Name(Origin origin) {
  switch (origin) {
    case Origin::kMeasured:
      return "measured";
    case Origin::kFitted:
      return "fitted";
    default:
      return "modelled";
  }
}

}  // namespace pipec
