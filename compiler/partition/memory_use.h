// What a device keeps, and what it takes to keep less.
#pragma once

#include <array>
#include <limits>
#include <numeric>

#include "compiler/partition/blocks.h"

namespace pipec {

// How often a stage keeps what is kept more than once.
struct Copies {
  int microbatches = 1;  // activations
  int versions = 1;      // weights
};

// In floating point: bytes times copies may exceed 64 bits.
inline double BytesOf(const HeldBytes& held, const Copies& copies) {
  return static_cast<double>(held.parameters) + static_cast<double>(copies.versions) * held.weights +
         static_cast<double>(copies.microbatches) * held.activations;
}

// Of all stages of a device.
class MemoryUse {
 public:
  void Add(const HeldBytes& held, const Copies& copies) { least_ += BytesOf(held, copies); }
  void Remove(const HeldBytes& held, const Copies& copies) { least_ -= BytesOf(held, copies); }
  void Add(const Remake& remake, const Copies& copies);
  void Remove(const Remake& remake, const Copies& copies);

  // With everything made again that can be.
  double least() const { return least_; }
  // Whether, whatever is added to both, this takes no longer to fit than the other.
  bool WithinEachPartOf(const MemoryUse& other) const;
  // Seconds of a microbatch, on a device of speed 1, for what is made again so that the rest is within `cap`;
  // infinity if least() is not.
  double RemakeSeconds(double cap) const;

 private:
  double least_ = 0;
  std::array<double, kRemakeKinds> bytes_{}, seconds_{};  // of what can be made again
};

inline void MemoryUse::Add(const Remake& remake, const Copies& copies) {
  for (int k = 0; k < kRemakeKinds; ++k) {
    bytes_[k] += static_cast<double>(copies.microbatches) * remake.bytes[k];
    seconds_[k] += remake.seconds[k];
  }
}

inline void MemoryUse::Remove(const Remake& remake, const Copies& copies) {
  for (int k = 0; k < kRemakeKinds; ++k) {
    bytes_[k] -= static_cast<double>(copies.microbatches) * remake.bytes[k];
    seconds_[k] -= remake.seconds[k];
  }
}

// More bytes that can be made again in the same seconds make each of them cheaper, but have to be made again as well.
inline bool MemoryUse::WithinEachPartOf(const MemoryUse& other) const {
  constexpr double kSlack = 1 + 1e-12;
  bool within = least_ <= other.least_;
  for (int k = 0; k < kRemakeKinds; ++k)
    within &= bytes_[k] <= other.bytes_[k] && seconds_[k] <= other.seconds_[k] * kSlack;
  return within;
}

inline double MemoryUse::RemakeSeconds(double cap) const {
  double beyond = std::accumulate(bytes_.begin(), bytes_.end(), least_) - cap, seconds = 0;
  for (int k = 0; k < kRemakeKinds && beyond > 0; ++k) {
    if (bytes_[k] == 0) continue;
    if (bytes_[k] >= beyond) return seconds + seconds_[k] * (beyond / bytes_[k]);
    seconds += seconds_[k];
    beyond -= bytes_[k];
  }
  return beyond <= 0 ? seconds : std::numeric_limits<double>::infinity();
}

}  // namespace pipec
