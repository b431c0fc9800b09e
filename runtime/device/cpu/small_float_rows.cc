#include "runtime/device/cpu/small_float_rows.h"

#include <bit>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace pipec::cpu {

void WidenRow(const Float16 *from, float *to, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
  }
#endif
  for (; i < n; ++i) to[i] = ToFloat(from[i]);
}

void WidenRow(const BFloat16 *from, float *to, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = ToFloat(from[i]);
}

void RoundRow(const float *from, Float16 *to, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < n; ++i) to[i] = ToFloat16(from[i]);
}

// To the nearest, ties to even: by adding just below half of the last place, or
// half where that place is odd.
void RoundRow(const float *from, BFloat16 *to, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    to[i] = {static_cast<uint16_t>(from[i] != from[i] ? (bits >> 16 | 0x40) : rounded)};
  }
}

}  // namespace pipec::cpu
