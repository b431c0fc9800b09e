// Warp operations: a lane waits until all lanes of its mask have come to the same operation.
#include <algorithm>
#include <bit>

#include "tests/cuda_emulation/block.h"

namespace cuda_emulation {

uint64_t Block::Warp(KernelThread& self, const WarpRequest& request) {
  const uint32_t lane = self.number % kWarpSize;
  if (!(request.mask >> lane & 1)) {
    Fail(self, cudaErrorLaunchFailure,
         "its own lane " + std::to_string(lane) + " is not in the mask of the warp operation at " +
             request.place.file + ":" + std::to_string(request.place.line));
  }
  self.request = request;
  self.state = KernelThread::State::kAtWarp;
  ++at_warp_[self.number / kWarpSize];
  TryReleaseWarp(self);
  self.fiber.Suspend();
  return self.result;
}

// A mask may name lanes that the block does not have; it must not name lanes that have exited.
void Block::TryReleaseWarp(KernelThread& last) {
  const WarpRequest& request = last.request;
  const uint32_t first = last.number / kWarpSize * kWarpSize;
  const uint32_t count = std::min<uint32_t>(kWarpSize, size() - first);
  const uint32_t mask = request.mask & (count == kWarpSize ? ~0u : (1u << count) - 1);
  if (at_warp_[first / kWarpSize] < std::popcount(mask)) return;
  Lanes lanes{};
  for (uint32_t lane = 0; lane < count; ++lane) {
    if (!(mask >> lane & 1)) continue;
    KernelThread& thread = Thread(first + lane);
    if (thread.state != KernelThread::State::kAtWarp || thread.request.action != request.action ||
        thread.request.mask != request.mask) {
      return;
    }
    lanes[lane] = &thread;
  }
  switch (request.action) {
    case WarpAction::kSync:
      OrderLanes(lanes);
      break;
    case WarpAction::kShuffle:
      ShuffleLanes(last, lanes);
      break;
    case WarpAction::kVote: {
      uint64_t ballot = 0;
      for (int lane = 0; lane < kWarpSize; ++lane) {
        if (lanes[lane] && lanes[lane]->request.value != 0) ballot |= uint64_t{1} << lane;
      }
      for (KernelThread* thread : lanes) {
        if (thread) thread->result = ballot;
      }
      break;
    }
  }
  at_warp_[first / kWarpSize] -= std::popcount(mask);
  for (KernelThread* thread : lanes) {
    if (thread) Release(*thread);
  }
}

void Block::ShuffleLanes(KernelThread& last, const Lanes& lanes) {
  for (KernelThread* thread : lanes) {
    if (!thread) continue;
    const WarpRequest& request = thread->request;
    const KernelThread* source = lanes[request.source];
    if (!source) {
      Fail(last, cudaErrorLaunchFailure,
           "the shuffle at " + std::string(request.place.file) + ":" + std::to_string(request.place.line) +
               " lets thread " + ThreadName(*thread) + " read lane " + std::to_string(request.source) +
               ", which takes no part in it");
    }
    thread->result = source->request.value;
  }
}

// Of the warp operations only __syncwarp orders memory.
void Block::OrderLanes(const Lanes& lanes) {
  std::array<uint32_t, kWarpSize> known{};
  uint32_t latest = 0;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if (!lanes[lane]) continue;
    for (int other = 0; other < kWarpSize; ++other)
      known[other] = std::max(known[other], lanes[lane]->known[other]);
    latest = std::max(latest, lanes[lane]->time);
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if (lanes[lane]) known[lane] = std::max(known[lane], lanes[lane]->time);
  }
  for (KernelThread* thread : lanes) {
    if (!thread) continue;
    thread->known = known;
    thread->time = latest + 1;
  }
}

}  // namespace cuda_emulation
