// One block of an emulated kernel: its threads as fibers, its barriers and warps, and the check of every access
// they make.
#pragma once

#include <vector_types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/cuda_emulation/failure.h"
#include "tests/cuda_emulation/fiber.h"
#include "tests/cuda_emulation/random.h"
#include "tests/cuda_emulation/shadow.h"

namespace cuda_emulation {

class Allocation;
class Block;
class Operation;

constexpr int kWarpSize = 32;

// A place in a kernel's source.
struct Place {
  const char* file = "";
  int line = 0;
};

enum class WarpAction { kSync, kShuffle, kVote, kMatrix, kMultiply };

// What a lane brings to a warp operation.
struct WarpRequest {
  WarpAction action;
  uint32_t mask;
  Place place;
  uint64_t value;   // to shuffle; for a vote 0 or 1; where a matrix is, or a MatrixLane
  uint64_t source;  // of a shuffle: the lane to read; of a matrix: the step between its rows, in bytes
};

struct KernelThread {
  enum class State { kReady, kAtBarrier, kAtWarp, kExited };

  Fiber fiber;
  Block* block = nullptr;
  uint3 index;
  uint32_t number = 0;  // in its block
  State state = State::kReady;
  Place barrier;
  WarpRequest request;
  uint64_t result = 0;
  uint32_t accesses = 0;
  // Counted at every barrier and __syncwarp. known[lane]: what of its warp's lanes has happened before.
  uint32_t time = 1;
  std::array<uint32_t, kWarpSize> known;
};

// The thread whose own code runs; null outside kernels, and while the emulation works for it.
extern constinit thread_local KernelThread* current_thread;

// The emulation works for the thread that runs.
class Pause {
 public:
  Pause() : self(*current_thread) { current_thread = nullptr; }
  ~Pause() { current_thread = &self; }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  KernelThread& self;
};

// A kernel with its arguments.
struct Launch {
  std::string kernel;
  dim3 grid, block;
  void (*run)(const void* arguments);
  std::shared_ptr<const void> arguments;
};

class Block {
 public:
  Block(const Launch& launch, uint3 index, const Operation& operation, Random& random);

  // Runs all threads to their end, or to the first fault.
  std::optional<Failure> Run();

  const Launch& launch() const { return launch_; }
  uint3 index() const { return index_; }

  // What follows is called for the thread that runs, `self`, while it pauses.
  //
  // Waits for all threads of the block; the number of threads with `vote`.
  int Barrier(KernelThread& self, Place place, bool vote);
  // Waits for the lanes of the mask; a shuffle's value, a vote's ballot.
  uint64_t Warp(KernelThread& self, const WarpRequest& request);
  void CheckAccess(KernelThread& self, uintptr_t address, size_t bytes, Access access);
  // Lets other threads run first, now and then, so that loops of atomic functions meet each other.
  void Atomic(KernelThread& self, uintptr_t address, size_t bytes);
  // Ends the kernel: `what` follows the thread's name.
  [[noreturn]] void Fail(KernelThread& self, cudaError_t error, const std::string& what);

 private:
  // A warp's threads that take part in an operation; null for the other lanes.
  using Lanes = std::array<KernelThread*, kWarpSize>;

  class InLaunch;
  class InBlock;

  static void Main(void* thread);
  KernelThread& Thread(uint32_t number) const { return *threads_[number]; }
  uint32_t size() const { return launch_.block.x * launch_.block.y * launch_.block.z; }
  void Release(KernelThread& thread);
  void ReleaseBarrier(KernelThread& last);
  void TryReleaseWarp(KernelThread& last);
  void ShuffleLanes(KernelThread& last, const Lanes& lanes);
  void OrderLanes(const Lanes& lanes);
  void CheckMatrix(KernelThread& last, const Lanes& lanes);
  void MultiplyLanes(KernelThread& last, const Lanes& lanes);
  void CheckGlobal(KernelThread& self, uintptr_t address, size_t bytes, Access access);
  void CheckShared(KernelThread& self, uintptr_t address, size_t bytes, Access access);
  std::string ThreadName(const KernelThread& thread) const;
  std::string DescribeWaiting() const;

  const Launch& launch_;
  const uint3 index_;
  const Operation& operation_;
  Random& random_;
  std::vector<std::unique_ptr<KernelThread>>&
      threads_;      // kept from block to block, and often more than this one has
  uint32_t number_;  // of this block in its launch
  uint32_t run_;     // of this block, for shared memory
  std::vector<KernelThread*> ready_;
  uint32_t live_ = 0;
  uint32_t at_barrier_ = 0;
  std::array<int, kWarpSize> at_warp_{};  // of each warp, how many threads wait in warp operations
  uint32_t barrier_time_ = 1;
  int votes_ = 0;
  int barrier_votes_ = 0;
  Allocation* memory_ = nullptr;  // the last that was touched
  std::optional<Failure> failure_;
};

}  // namespace cuda_emulation
