// What the headers of kernels call.
#include "tests/cuda_emulation/block.h"
#include "tests/cuda_emulation/device_atomics.h"
#include "tests/cuda_emulation/device_index.h"
#include "tests/cuda_emulation/device_warp.h"

namespace cuda_emulation {

uint3 ThreadIndex() noexcept { return current_thread->index; }
uint3 BlockIndex() noexcept { return current_thread->block->index(); }
dim3 BlockSize() noexcept { return current_thread->block->launch().block; }
dim3 GridSize() noexcept { return current_thread->block->launch().grid; }
int Lane() noexcept { return static_cast<int>(current_thread->number % kWarpSize); }

int WaitForBlock(bool vote, const char* file, int line) noexcept {
  const Pause pause;
  return pause.self.block->Barrier(pause.self, {file, line}, vote);
}

void WaitForWarp(uint32_t mask, const char* file, int line) noexcept {
  const Pause pause;
  pause.self.block->Warp(pause.self, {WarpAction::kSync, mask, {file, line}, 0, 0});
}

uint64_t ShuffleInWarp(uint32_t mask, uint64_t value, int source, const char* file, int line) noexcept {
  const Pause pause;
  return pause.self.block->Warp(pause.self, {WarpAction::kShuffle, mask, {file, line}, value, source});
}

uint32_t VoteInWarp(uint32_t mask, bool vote, const char* file, int line) noexcept {
  const Pause pause;
  return static_cast<uint32_t>(
      pause.self.block->Warp(pause.self, {WarpAction::kVote, mask, {file, line}, vote, 0}));
}

void CheckAtomic(const void* address, size_t bytes) noexcept {
  const Pause pause;
  const auto value = reinterpret_cast<uintptr_t>(address);
  if (value % bytes != 0)
    pause.self.block->Fail(pause.self, cudaErrorMisalignedAddress,
                           "an atomic function of a misaligned address");
  pause.self.block->Atomic(pause.self, value, bytes);
}

}  // namespace cuda_emulation
