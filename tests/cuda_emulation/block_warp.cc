// Warp operations: a lane waits until all lanes of its mask have come to the same operation.
#include <algorithm>

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
  TryReleaseWarp(self);
  self.fiber.Suspend();
  return self.result;
}

// A mask may name lanes that the block does not have; it must not name lanes that have exited.
void Block::TryReleaseWarp(KernelThread& last) {
  const WarpRequest& request = last.request;
  const uint32_t first = last.number / kWarpSize * kWarpSize;
  std::vector<KernelThread*> lanes;
  for (uint32_t lane = 0; lane < kWarpSize && first + lane < size(); ++lane) {
    if (!(request.mask >> lane & 1)) continue;
    KernelThread& thread = ThreadNumber(first + lane);
    if (thread.state != KernelThread::State::kAtWarp || thread.request.action != request.action ||
        thread.request.mask != request.mask) {
      return;
    }
    lanes.push_back(&thread);
  }
  ReleaseWarp(last, lanes);
}

void Block::ReleaseWarp(KernelThread& last, const std::vector<KernelThread*>& lanes) {
  const WarpRequest& request = lanes.front()->request;
  uint64_t ballot = 0;
  for (const KernelThread* thread : lanes)
    ballot |= (thread->request.value != 0) << (thread->number % kWarpSize);
  for (KernelThread* thread : lanes) {
    if (request.action == WarpAction::kVote) thread->result = ballot;
    if (request.action != WarpAction::kShuffle) continue;
    const uint32_t source = thread->number / kWarpSize * kWarpSize + thread->request.source;
    const auto from =
        std::find_if(lanes.begin(), lanes.end(), [&](KernelThread* t) { return t->number == source; });
    if (from == lanes.end()) {
      Fail(last, cudaErrorLaunchFailure,
           "the shuffle at " + std::string(thread->request.place.file) + ":" +
               std::to_string(thread->request.place.line) + " lets thread " + ThreadName(*thread) +
               " read lane " + std::to_string(thread->request.source) + ", which takes no part in it");
    }
    thread->result = (*from)->request.value;
  }
  // Only __syncwarp orders memory.
  if (request.action == WarpAction::kSync) {
    std::array<uint32_t, kWarpSize> known{};
    uint32_t latest = 0;
    for (const KernelThread* thread : lanes) {
      for (int lane = 0; lane < kWarpSize; ++lane) known[lane] = std::max(known[lane], thread->known[lane]);
      latest = std::max(latest, thread->time);
    }
    for (const KernelThread* thread : lanes) {
      uint32_t& own = known[thread->number % kWarpSize];
      own = std::max(own, thread->time);
    }
    for (KernelThread* thread : lanes) {
      thread->known = known;
      thread->time = latest + 1;
    }
  }
  for (KernelThread* thread : lanes) Release(*thread);
}

}  // namespace cuda_emulation
