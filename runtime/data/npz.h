// npz: a zip of npy files, read and written with libzip.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/data/host_array.h"

namespace pipec {

// The arrays among `wanted` that the file has (all, if `wanted` is empty). Errors name file and array.
absl::StatusOr<NamedArrays> ReadNpz(const std::string& path, absl::Span<const std::string> wanted);

// Stored without compression; the file appears whole or not at all.
absl::Status WriteNpz(const std::string& path, const NamedArrays& arrays);

}  // namespace pipec
