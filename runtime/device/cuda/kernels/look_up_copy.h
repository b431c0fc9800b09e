// A copy whose coordinates are looked up axis by axis: result[i, k, ...] = operand[place(0, i), place(1, k), ...].
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/cuda_context.h"

namespace pipec::cuda {

// Of operand 0 into result 0, whose ranks agree; the places are asked for at once.
absl::StatusOr<std::unique_ptr<Kernel>> MakeLookUpCopy(
    const KernelSpec& spec, CudaContext& context, const std::function<int64_t(int axis, int64_t at)>& place);

}  // namespace pipec::cuda
