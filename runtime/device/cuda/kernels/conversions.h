// 16-bit floats as float32 and back on the GPU, for kernels that are made for float32 alone.
#pragma once

#include "runtime/device/widened_kernel.h"

namespace pipec::cuda {

const SmallFloatConversions& Conversions();

}  // namespace pipec::cuda
