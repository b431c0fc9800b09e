// Barriers, shuffles and votes.
#pragma once

#include <cstdint>
#include <cstring>

#include "tests/cuda_emulation/device_index.h"

namespace cuda_emulation {

// The number of threads with a vote.
int WaitForBlock(bool vote, const char* file, int line) noexcept;
void WaitForWarp(uint32_t mask, const char* file, int line) noexcept;
// The value of another lane.
uint64_t ShuffleInWarp(uint32_t mask, uint64_t value, int source, const char* file, int line) noexcept;
// The lanes with a vote.
uint32_t VoteInWarp(uint32_t mask, bool vote, const char* file, int line) noexcept;
int Lane() noexcept;

template <typename T>
T Shuffle(uint32_t mask, T value, int source, const char* file, int line) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = ShuffleInWarp(mask, bits, source, file, line);
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

}  // namespace cuda_emulation

#define CUDA_EMULATION_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(CUDA_EMULATION_PLACE) { cuda_emulation::WaitForBlock(false, file, line); }
inline int __syncthreads_count(int vote, CUDA_EMULATION_PLACE) {
  return cuda_emulation::WaitForBlock(vote != 0, file, line);
}
inline int __syncthreads_or(int vote, CUDA_EMULATION_PLACE) {
  return cuda_emulation::WaitForBlock(vote != 0, file, line) > 0;
}
inline int __syncthreads_and(int vote, CUDA_EMULATION_PLACE) {
  return cuda_emulation::WaitForBlock(vote == 0, file, line) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffff, CUDA_EMULATION_PLACE) {
  cuda_emulation::WaitForWarp(mask, file, line);
}

// Order of memory between threads comes from barriers here; fences add none.
inline void __threadfence_block() {}
inline void __threadfence() {}
inline void __threadfence_system() {}

inline unsigned __ballot_sync(unsigned mask, int vote, CUDA_EMULATION_PLACE) {
  return cuda_emulation::VoteInWarp(mask, vote != 0, file, line);
}
inline int __any_sync(unsigned mask, int vote, CUDA_EMULATION_PLACE) {
  return cuda_emulation::VoteInWarp(mask, vote != 0, file, line) != 0;
}
inline int __all_sync(unsigned mask, int vote, CUDA_EMULATION_PLACE) {
  return cuda_emulation::VoteInWarp(mask, vote == 0, file, line) == 0;
}

// Sources outside of a lane's own group of `width` lanes give its own value (CUDA programming guide, "Warp Shuffle
// Functions").
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, CUDA_EMULATION_PLACE) {
  const int lane = cuda_emulation::Lane();
  return cuda_emulation::Shuffle(mask, value, (lane & -width) + (source & (width - 1)), file, line);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CUDA_EMULATION_PLACE) {
  const int lane = cuda_emulation::Lane(), source = lane - static_cast<int>(delta);
  return cuda_emulation::Shuffle(mask, value, source < (lane & -width) ? lane : source, file, line);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CUDA_EMULATION_PLACE) {
  const int lane = cuda_emulation::Lane(), source = lane + static_cast<int>(delta);
  return cuda_emulation::Shuffle(mask, value, source >= (lane & -width) + width ? lane : source, file, line);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize, CUDA_EMULATION_PLACE) {
  const int lane = cuda_emulation::Lane(), source = lane ^ lane_mask;
  return cuda_emulation::Shuffle(mask, value, source >= (lane & -width) + width ? lane : source, file, line);
}
