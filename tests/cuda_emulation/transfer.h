// What operations other than kernels read and write: each range is checked as a kernel's accesses are.
#pragma once

#include <cstddef>
#include <optional>

#include "tests/cuda_emulation/failure.h"
#include "tests/cuda_emulation/operation.h"
#include "tests/cuda_emulation/shadow.h"

namespace cuda_emulation {

// The range must be live memory, of whatever device; no unordered operation may have touched it.
std::optional<Failure> CheckCopy(const Operation& operation, const void* begin, size_t bytes, Access access);
// The same for what the device's own processors do: the device must reach that memory, and the range lie in its
// operands.
std::optional<Failure> CheckRange(const Operation& operation, const void* begin, size_t bytes, Access access);

}  // namespace cuda_emulation
