// float16 and bfloat16 among the element types of kernels that move or convert them; all others compute in
// float32 (widened_kernel.h).
#pragma once

#include "runtime/base/small_floats.h"
#include "runtime/device/cpu/kernels/typed.h"

namespace pipec::cpu {

template <>
inline constexpr DType kDType<Float16> = DType::kFloat16;
template <>
inline constexpr DType kDType<BFloat16> = DType::kBFloat16;

}  // namespace pipec::cpu
