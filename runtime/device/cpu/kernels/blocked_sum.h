// A sum of many terms that is the same for every number of threads: float64 sums of blocks, added from the
// first to the last.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/device/cpu/kernels/lanes.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {

constexpr int64_t kSumBlock = 8192;

// Bytes of workspace for a sum of n terms.
inline int64_t BlockedSumBytes(int64_t n) {
  return (n + kSumBlock - 1) / kSumBlock * static_cast<int64_t>(sizeof(double));
}

// term(0) + ... + term(n - 1).
template <typename Term>
double BlockedSum(int64_t n, void* workspace, const Term& term) {
  double* const partial = static_cast<double*>(workspace);
  ParallelFor(n, kSumBlock, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block += kSumBlock) {
      const int64_t length = std::min(kSumBlock, end - block);
      partial[block / kSumBlock] = Sum<double>(length, [&, block](int64_t i) { return term(block + i); });
    }
  });
  double sum = 0;
  for (int64_t k = 0; k < (n + kSumBlock - 1) / kSumBlock; ++k) sum += partial[k];
  return sum;
}

}  // namespace pipec::cpu
