// exp, log, tanh, erf and the logistic function of float32 without branches, so that the compiler can
// vectorise loops over them (vector_loop.h). At most 3 units in the last place from the exact value,
// tests/unit/device_cpu_movement holds them to it; infinities, NaN, zeros and denormals as in the C library.
// float64 goes to the C library.
//
// Method: the usual range reductions (Muller, "Elementary Functions", 2nd ed., ch. 11) with minimax
// polynomials fitted for these intervals.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/device/cpu/kernels/vector_loop.h"

namespace pipec::cpu {

PIPEC_INLINE double Exp(double x) { return std::exp(x); }
PIPEC_INLINE double Log(double x) { return std::log(x); }
PIPEC_INLINE double Tanh(double x) { return std::tanh(x); }
PIPEC_INLINE double Erf(double x) { return std::erf(x); }
PIPEC_INLINE double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// e^x = 2^n e^r with |r| <= ln(2)/2.
PIPEC_INLINE float Exp(float x) {
  x = x < -104.0f ? -104.0f : x;  // 0 below, infinity above; NaN passes both
  x = x > 89.0f ? 89.0f : x;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  float r = x - n * 0.693145752f;  // ln(2) in two parts: the first has few bits, so that n times it is exact
  r = r - n * 1.42860677e-6f;
  float q = 1.381460228e-03f;
  q = q * r + 8.368715644e-03f;
  q = q * r + 4.166838899e-02f;
  q = q * r + 1.666652113e-01f;
  q = q * r + 4.999999404e-01f;
  q = q * r * r + r + 1.0f;
  // 2^n in two factors, so that denormal results are rounded once and 2^128 is reached.
  const int32_t power =
      static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound));
  const int32_t half = power >> 1;
  const float low = std::bit_cast<float>((static_cast<uint32_t>(half) + 127u) << 23);
  const float high =
      std::bit_cast<float>((static_cast<uint32_t>(power) - static_cast<uint32_t>(half) + 127u) << 23);
  return q * low * high;
}

// log x = e ln(2) + log m with sqrt(1/2) <= m < sqrt(2).
PIPEC_INLINE float Log(float x) {
  const bool denormal = x < std::numeric_limits<float>::min();
  const float normal = denormal ? x * 8388608.0f : x;
  const uint32_t bits = std::bit_cast<uint32_t>(normal) - 0x3f3504f3u;  // of sqrt(1/2)
  const float e = static_cast<float>(static_cast<int32_t>(bits) >> 23) - (denormal ? 23.0f : 0.0f);
  const float f = std::bit_cast<float>((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float q = 6.744587421e-02f;
  q = q * f - 1.167481914e-01f;
  q = q * f + 1.188858896e-01f;
  q = q * f - 1.240575314e-01f;
  q = q * f + 1.421952099e-01f;
  q = q * f - 1.666798592e-01f;
  q = q * f + 2.000211924e-01f;
  q = q * f - 2.500000894e-01f;
  q = q * f + 3.333331347e-01f;
  const float square = f * f;
  float y = q * f * square + e * 1.42860677e-6f;
  y = y - 0.5f * square;
  y = y + f + e * 0.693145752f;
  y = x == std::numeric_limits<float>::infinity() ? x : y;
  y = x == 0.0f ? -std::numeric_limits<float>::infinity() : y;
  return x >= 0.0f ? y : std::numeric_limits<float>::quiet_NaN();
}

PIPEC_INLINE float Tanh(float x) {
  const float t = std::fabs(x);
  const float square = x * x;
  float q = -5.704987328e-03f;
  q = q * square + 2.063908800e-02f;
  q = q * square - 5.373971537e-02f;
  q = q * square + 1.333144158e-01f;
  q = q * square - 3.333328068e-01f;
  const float small = q * square * x + x;
  const float large = std::copysign(1.0f - 2.0f / (Exp(2.0f * t) + 1.0f), x);
  return t < 0.625f ? small : large;
}

// Near 0 an odd polynomial; else 1 - e^-p(|x|), where p approximates -log(erfc).
PIPEC_INLINE float Erf(float x) {
  const float t = std::fabs(x);
  const float square = x * x;
  float small = 7.853877469e-05f;
  small = small * square - 8.010198944e-04f;
  small = small * square + 5.188328214e-03f;
  small = small * square - 2.685381286e-02f;
  small = small * square + 1.128358543e-01f;
  small = small * square - 3.761262596e-01f;
  small = small * square + 1.283791661e-01f;
  small = small * x + x;
  const float u = t > 4.0f ? 4.0f : t;  // erf is 1 in float32 from 3.92 on
  float p = -1.915041357e-04f;
  p = p * u + 2.999540651e-03f;
  p = p * u - 2.205199748e-02f;
  p = p * u + 1.035668924e-01f;
  p = p * u + 6.376000643e-01f;
  p = p * u + 1.127426028e+00f;
  p = p * u + 2.564456954e-04f;
  const float large = std::copysign(1.0f - Exp(-p), x);
  return t < 1.0f ? small : large;
}

PIPEC_INLINE float Sigmoid(float x) {
  const float e = Exp(-std::fabs(x));  // at most 1: no infinity on the way to a denormal
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

}  // namespace pipec::cpu
