// How much memory would have done, as far as is known: what a ResourceExhausted about a device's memory carries beside
// its text.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"

namespace pipec {

// The status with `bytes` a device, in place of what it carried.
absl::Status WithLeastMemory(absl::Status status, int64_t bytes);
// The status with what `other` carries of this, if anything: for one that says the same in more words.
absl::Status SameLeastMemory(const absl::Status& status, const absl::Status& other);
// Nothing if it carries none.
std::optional<int64_t> LeastMemory(const absl::Status& status);

}  // namespace pipec
