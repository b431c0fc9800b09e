#include "tests/cuda_emulation/block.h"

#include <algorithm>
#include <cstdio>

#include "tests/cuda_emulation/operation.h"

namespace cuda_emulation {

constinit thread_local KernelThread* current_thread = nullptr;

namespace {

std::string Triple(uint3 v) {
  return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
}

std::string Name(Place place) { return std::string(place.file) + ":" + std::to_string(place.line); }

std::vector<std::unique_ptr<KernelThread>>& Threads() {
  static thread_local std::vector<std::unique_ptr<KernelThread>> threads;
  return threads;
}

}  // namespace

Block::Block(const Launch& launch, uint3 index, const Operation& operation, Random& random)
    : launch_(launch),
      index_(index),
      operation_(operation),
      random_(random),
      threads_(Threads()),
      run_(OperationTable::Get().NewBlock()) {
  number_ = index.x + launch.grid.x * (index.y + launch.grid.y * index.z);
}

void Block::Main(void* thread) {
  KernelThread& self = *static_cast<KernelThread*>(thread);
  const Launch& launch = self.block->launch();
  current_thread = &self;
  launch.run(launch.arguments.get());
  current_thread = nullptr;
  self.state = KernelThread::State::kExited;
}

std::optional<Failure> Block::Run() {
  live_ = size();
  while (threads_.size() < size()) threads_.push_back(std::make_unique<KernelThread>());
  for (uint32_t number = 0; number < size(); ++number) {
    KernelThread& thread = Thread(number);
    thread.block = this;
    thread.number = number;
    thread.index = {number % launch_.block.x, number / launch_.block.x % launch_.block.y,
                    number / (launch_.block.x * launch_.block.y)};
    thread.time = 1;
    thread.accesses = 0;
    thread.known.fill(0);
    thread.fiber.Start(&Block::Main, &thread);
    Release(thread);
  }
  while (live_ > 0 && !failure_) {
    if (ready_.empty()) {
      return Failure{cudaErrorLaunchFailure,
                     "block " + Triple(index_) + ": its threads wait for each other: " + DescribeWaiting()};
    }
    KernelThread& thread = *random_.Take(ready_);
    thread.fiber.Resume();
    if (thread.state == KernelThread::State::kExited) --live_;
  }
  return std::move(failure_);
}

void Block::Fail(KernelThread& self, cudaError_t error, const std::string& what) {
  failure_ = Failure{error, "block " + Triple(index_) + ", thread " + ThreadName(self) + ": " + what};
  // Whoever runs the block does not come back.
  for (;;) self.fiber.Suspend();
}

void Block::Atomic(KernelThread& self, uintptr_t address, size_t bytes) {
  if (random_.Below(4) == 0) {
    Release(self);
    self.fiber.Suspend();
  }
  CheckAccess(self, address, bytes, Access::kAtomic);
}

void Block::Release(KernelThread& thread) {
  thread.state = KernelThread::State::kReady;
  ready_.push_back(&thread);
}

int Block::Barrier(KernelThread& self, Place place, bool vote) {
  self.barrier = place;
  votes_ += vote;
  self.state = KernelThread::State::kAtBarrier;
  if (++at_barrier_ == size()) ReleaseBarrier(self);
  self.fiber.Suspend();
  return barrier_votes_;
}

void Block::ReleaseBarrier(KernelThread& last) {
  uint32_t latest = 0;
  for (uint32_t number = 0; number < size(); ++number) {
    const KernelThread& thread = Thread(number);
    latest = std::max(latest, thread.time);
    if (thread.barrier.line != Thread(0).barrier.line) {
      Fail(last, cudaErrorLaunchFailure,
           "divergent barrier: threads meet at different __syncthreads: " + DescribeWaiting());
    }
  }
  barrier_time_ = latest + 1;
  for (uint32_t number = 0; number < size(); ++number) {
    KernelThread& thread = Thread(number);
    thread.time = barrier_time_;
    thread.known.fill(latest);
    Release(thread);
  }
  barrier_votes_ = std::exchange(votes_, 0);
  at_barrier_ = 0;
}

std::string Block::ThreadName(const KernelThread& thread) const { return Triple(thread.index); }

std::string Block::DescribeWaiting() const {
  std::vector<std::string> seen;
  std::string text;
  for (uint32_t number = 0; number < size(); ++number) {
    const KernelThread& thread = Thread(number);
    std::string what;
    switch (thread.state) {
      case KernelThread::State::kReady:
        what = "runs";
        break;
      case KernelThread::State::kAtBarrier:
        what = "waits at __syncthreads " + Name(thread.barrier);
        break;
      case KernelThread::State::kAtWarp: {
        char mask[16];
        std::snprintf(mask, sizeof mask, "%08x", thread.request.mask);
        what = "waits for the lanes " + std::string(mask) + " of its warp at " + Name(thread.request.place);
        break;
      }
      case KernelThread::State::kExited:
        what = "has exited";
        break;
    }
    if (std::find(seen.begin(), seen.end(), what) != seen.end()) continue;
    text += (seen.empty() ? "thread " : "; thread ") + ThreadName(thread) + " " + what;
    seen.push_back(what);
  }
  return text;
}

}  // namespace cuda_emulation
