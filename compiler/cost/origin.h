// Where a figure comes from.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace pipec {

enum class Origin : uint8_t { kModelled, kMeasured };

inline absl::string_view Name(Origin origin) { return origin == Origin::kMeasured ? "measured" : "modelled"; }

}  // namespace pipec
