#include "runtime/data/sample_order.h"

#include <algorithm>
#include <bit>

namespace pipec {

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

SampleOrder::SampleOrder(int64_t samples, bool shuffle, uint64_t seed, int64_t epoch)
    : samples_(samples),
      shuffle_(shuffle),
      key_(Mix(Mix(seed) ^ static_cast<uint64_t>(epoch))),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(samples_ > 0 ? samples_ - 1 : 0)) + 1) / 2)) {}

// A Feistel network over 2 half_bits_ bits is a permutation whatever its round function is.
uint64_t SampleOrder::Permute(uint64_t x) const {
  constexpr int kRounds = 6;
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = x >> half_bits_, right = x & mask;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t next = left ^ (Mix(key_ ^ (right * kRounds + round)) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

int64_t SampleOrder::At(int64_t position) const {
  if (!shuffle_) return position;
  // Cycle walking: the network's domain is less than four times the samples; a value outside is permuted
  // again.
  uint64_t x = static_cast<uint64_t>(position);
  do {
    x = Permute(x);
  } while (x >= samples_);
  return static_cast<int64_t>(x);
}

}  // namespace pipec
