#include "compiler/partition/memory_use.h"

#include <limits>
#include <numeric>

namespace pipec {

void MemoryUse::Add(const Remake& remake, const Copies& copies) {
  for (int k = 0; k < kRemakeKinds; ++k) {
    bytes_[k] += static_cast<double>(copies.microbatches) * remake.bytes[k];
    seconds_[k] += remake.seconds[k];
  }
}

void MemoryUse::Remove(const Remake& remake, const Copies& copies) {
  for (int k = 0; k < kRemakeKinds; ++k) {
    bytes_[k] -= static_cast<double>(copies.microbatches) * remake.bytes[k];
    seconds_[k] -= remake.seconds[k];
  }
}

double MemoryUse::RemakeSeconds(double cap) const {
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
