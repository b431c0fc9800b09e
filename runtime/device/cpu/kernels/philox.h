// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As
// Easy as 1, 2, 3" (SC 2011): four random words from a counter of four words and a key of two.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/kernels/vector_loop.h"

namespace pipec::cpu {

constexpr int kPhiloxLanes = 64;

// The words of kPhiloxLanes counters that differ in word 0 alone: first, first + 1, ... Word w of counter
// first + k goes to words[4 * k + w].
PIPEC_INLINE void Philox(uint32_t first, uint32_t counter1, uint32_t counter2, uint32_t counter3,
                         uint64_t key, uint32_t* words) {
  uint32_t a[kPhiloxLanes], b[kPhiloxLanes], c[kPhiloxLanes], d[kPhiloxLanes];
  for (int k = 0; k < kPhiloxLanes; ++k) {
    a[k] = first + static_cast<uint32_t>(k);
    b[k] = counter1;
    c[k] = counter2;
    d[k] = counter3;
  }
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int k = 0; k < kPhiloxLanes; ++k) {
      const uint64_t p0 = uint64_t{0xD2511F53} * a[k], p1 = uint64_t{0xCD9E8D57} * c[k];
      a[k] = static_cast<uint32_t>(p1 >> 32) ^ b[k] ^ key0;
      c[k] = static_cast<uint32_t>(p0 >> 32) ^ d[k] ^ key1;
      b[k] = static_cast<uint32_t>(p1);
      d[k] = static_cast<uint32_t>(p0);
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  for (int k = 0; k < kPhiloxLanes; ++k) {
    words[4 * k] = a[k];
    words[4 * k + 1] = b[k];
    words[4 * k + 2] = c[k];
    words[4 * k + 3] = d[k];
  }
}

}  // namespace pipec::cpu
