// Rows of 16-bit floats to float32 and back, as vector code: the same bits as runtime/base/small_floats.h.
#pragma once

#include <cstdint>

#include "runtime/base/small_floats.h"

namespace pipec::cpu {

void WidenRow(const Float16* from, float* to, int64_t n);
void WidenRow(const BFloat16* from, float* to, int64_t n);
// To the nearest, ties to even.
void RoundRow(const float* from, Float16* to, int64_t n);
void RoundRow(const float* from, BFloat16* to, int64_t n);

}  // namespace pipec::cpu
