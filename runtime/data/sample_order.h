// In which order the samples of an epoch are used: a function of seed and epoch, computed sample by sample.
#pragma once

#include <cstdint>

namespace pipec {

class SampleOrder {
 public:
  // A permutation of [0, samples); the identity unless `shuffle`.
  SampleOrder(int64_t samples, bool shuffle, uint64_t seed, int64_t epoch);
  // The sample at `position` in [0, samples).
  int64_t At(int64_t position) const;

 private:
  uint64_t Permute(uint64_t x) const;

  uint64_t samples_;
  bool shuffle_;
  uint64_t key_;
  int half_bits_;
};

// A 64-bit hash with good avalanche (the finaliser of SplitMix64, Steele et al., OOPSLA 2014): the
// counter-based generator of data order and synthetic data.
uint64_t Mix(uint64_t x);

}  // namespace pipec
