// What a device keeps, and what it takes to keep less.
#pragma once

#include <array>

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
  // Seconds of a microbatch, on a device of speed 1, for what is made again so that the rest is within `cap`; infinity if
  // least() is not.
  double RemakeSeconds(double cap) const;

 private:
  double least_ = 0;
  std::array<double, kRemakeKinds> bytes_{}, seconds_{};  // of what can be made again
};

}  // namespace pipec
