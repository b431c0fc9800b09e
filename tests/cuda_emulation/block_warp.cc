// Warp operations: a lane waits until all lanes of its mask have come to the same operation.
#include <algorithm>
#include <bit>

#include "tests/cuda_emulation/block.h"
#include "tests/cuda_emulation/matrix_lane.h"

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
    case WarpAction::kMatrix:
      CheckMatrix(last, lanes);
      break;
    case WarpAction::kMultiply:
      MultiplyLanes(last, lanes);
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

// 256 bits of the address, and 16 bytes of the step (guide, "Warp Matrix Functions", "Description").
void Block::CheckMatrix(KernelThread& last, const Lanes& lanes) {
  const auto wrong = [&](const std::string& what) {
    const Place& place = last.request.place;
    Fail(last, cudaErrorLaunchFailure,
         "the matrix at " + std::string(place.file) + ":" + std::to_string(place.line) + " " + what);
  };
  for (const KernelThread* thread : lanes) {
    if (!thread) wrong("is not of a whole warp");
    if (thread->request.value != last.request.value || thread->request.source != last.request.source)
      wrong("is not the same for all lanes");
  }
  if (last.request.value % 32 != 0) wrong("does not begin at a multiple of 32 bytes");
  if (last.request.source % 16 != 0)
    wrong("has rows " + std::to_string(last.request.source) + " bytes apart, no multiple of 16");
}

void Block::MultiplyLanes(KernelThread& last, const Lanes& lanes) {
  constexpr int kSide = kMatrixSide;
  float a[kSide * kSide], b[kSide * kSide], c[kSide * kSide];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if (!lanes[lane]) Fail(last, cudaErrorLaunchFailure, "a product of matrices is not of a whole warp");
    const auto& own = *reinterpret_cast<const MatrixLane*>(lanes[lane]->request.value);
    for (int e = 0; e < kLaneElements; ++e) {
      const int place = PlaceInMatrix(lane, e);
      a[place] = own.a[e], b[place] = own.b[e], c[place] = own.c[e];
    }
  }
  for (int i = 0; i < kSide; ++i) {
    for (int k = 0; k < kSide; ++k) {
      for (int j = 0; j < kSide; ++j) c[i * kSide + j] += a[i * kSide + k] * b[k * kSide + j];
    }
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    auto& own = *reinterpret_cast<MatrixLane*>(lanes[lane]->request.value);
    for (int e = 0; e < kLaneElements; ++e) own.d[e] = c[PlaceInMatrix(lane, e)];
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
