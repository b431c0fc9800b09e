// What the headers of kernels call.
#include "tests/cuda_emulation/block.h"
#include "tests/cuda_emulation/device_atomics.h"
#include "tests/cuda_emulation/device_index.h"
#include "tests/cuda_emulation/device_warp.h"
#include "tests/cuda_emulation/matrix_lane.h"

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
  return pause.self.block->Warp(
      pause.self, {WarpAction::kShuffle, mask, {file, line}, value, static_cast<uint64_t>(source)});
}

uint32_t VoteInWarp(uint32_t mask, bool vote, const char* file, int line) noexcept {
  const Pause pause;
  return static_cast<uint32_t>(
      pause.self.block->Warp(pause.self, {WarpAction::kVote, mask, {file, line}, vote, 0}));
}

void MeetAtMatrix(const void* address, size_t step_bytes, const char* file, int line) noexcept {
  const Pause pause;
  pause.self.block->Warp(
      pause.self, {WarpAction::kMatrix, ~0u, {file, line}, reinterpret_cast<uintptr_t>(address), step_bytes});
}

void MultiplyInWarp(MatrixLane& lane, const char* file, int line) noexcept {
  const Pause pause;
  pause.self.block->Warp(pause.self,
                         {WarpAction::kMultiply, ~0u, {file, line}, reinterpret_cast<uintptr_t>(&lane), 0});
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
