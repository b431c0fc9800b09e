// The npy format: magic, version, a Python dict that tells type and shape, then the array.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/host_array.h"

namespace pipec {

// `file` is a whole npy file, kept alive by `owner`. Refused: object arrays, Fortran order, big-endian and
// structured types, a size that is not that of the shape. InvalidArgument, without a file's name.
absl::StatusOr<HostArray> ParseNpy(absl::string_view file, std::shared_ptr<const void> owner);

// The first bytes of an npy file that holds `type`. Types of at most 8 bits that NumPy has not: int4 and int2 as
// int8, the others, floats as their codes, as uint8. InvalidArgument for a type that files cannot hold.
absl::StatusOr<std::string> NpyHeader(const TensorType& type);

}  // namespace pipec
