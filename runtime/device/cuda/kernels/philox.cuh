// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
// 1, 2, 3" (SC 2011): four random words from a counter of four words and a key of two.
#pragma once

#include <cstdint>

namespace pipec::cuda {

struct Words {
  uint32_t at[4];
};

__device__ __forceinline__ Words Philox(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint64_t key) {
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * a, p1 = uint64_t{0xCD9E8D57} * c;
    a = static_cast<uint32_t>(p1 >> 32) ^ b ^ key0;
    b = static_cast<uint32_t>(p1);
    c = static_cast<uint32_t>(p0 >> 32) ^ d ^ key1;
    d = static_cast<uint32_t>(p0);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return {{a, b, c, d}};
}

}  // namespace pipec::cuda
