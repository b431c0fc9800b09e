// The state of the emulated devices: memory, handles, what is enqueued, what went wrong. One for the program,
// behind one lock, which every double of a CUDA call holds (call.h).
#pragma once

#include <driver_types.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_emulation/handles.h"
#include "tests/cuda_emulation/memory_map.h"
#include "tests/cuda_emulation/random.h"
#include "tests/cuda_emulation/scheduler.h"

namespace cuda_emulation {

// The objects of one kind that live, in the order in which they were made.
template <typename T>
class Handles {
 public:
  T* Add(T value) { return live_.emplace_back(std::make_unique<T>(std::move(value))).get(); }
  bool Has(const T* handle) const { return Find(handle) != live_.end(); }
  void Remove(const T* handle) { live_.erase(Find(handle)); }
  size_t size() const { return live_.size(); }
  auto begin() const { return live_.begin(); }
  auto end() const { return live_.end(); }

 private:
  auto Find(const T* handle) const {
    return std::find_if(live_.begin(), live_.end(), [&](const auto& each) { return each.get() == handle; });
  }

  std::vector<std::unique_ptr<T>> live_;
};

class Machine {
 public:
  static Machine& Get();

  std::mutex lock;
  std::condition_variable enqueued;
  Random random{0};
  Scheduler scheduler{*this};
  MemoryMap memory;

  int devices = 1;
  size_t device_bytes = size_t{16} << 30;
  bool can_be_peers = false;            // as far as the hardware goes
  std::set<std::pair<int, int>> peers;  // (a, b): a may reach b's memory
  int64_t copies_by_host = 0;           // between devices without peer access

  Handles<CUstream_st> streams;
  Handles<CUevent_st> events;
  Handles<CUgraph_st> graphs;
  Handles<CUgraphExec_st> graph_execs;
  std::map<int, uint32_t> graph_positions;  // the last one given on each chain of a graph
  std::set<std::shared_ptr<Capture>> captures;
  std::set<const void*> dnn_objects;  // handles and descriptors of cuDNN
  size_t blas_objects = 0;            // of cuBLASLt
  bool epilogues_want_alignment = false;  // it has them for operands that are aligned to 16 bytes alone

  int64_t calls = 0;
  std::map<std::string, int64_t> calls_of;  // by name
  int64_t fail_at = 0;                      // the number of the call that fails; 0: none
  std::string fail_of;                      // among the calls of this name; empty: of all
  cudaError_t fail_with = cudaSuccess;
  std::set<uint64_t> wait_sites;  // control.h
  uint64_t ignored_site = 0;      // 0: none
  std::map<int, cudaError_t> broken;  // devices whose work ended with a fault
  std::vector<std::string> reports;
  std::vector<std::function<void()>> at_restart;  // of the libraries' doubles: to forget what is enqueued

  bool MayReach(int device, int memory_device) const {
    return memory_device < 0 || memory_device == device || peers.count({device, memory_device}) > 0;
  }
  // The stream of a handle; 0 is the device's legacy stream. Null for a handle that lives no more.
  CUstream_st* StreamOf(cudaStream_t handle);
  CUstream_st& LegacyStream(int device);
  int NewChain() { return chains_++; }
  // Of each node: it goes on with the chain of the first earlier node that nobody goes on with yet.
  std::vector<int> ChainsOf(const std::vector<Node>& nodes);
  // Notes why a call is refused.
  cudaError_t Refuse(cudaError_t error, const std::string& why);
  // A kernel or a copy went wrong: the device does nothing more.
  void Break(int device, const Failure& failure);
  // Forgets what happened; memory and handles stay.
  void StartAfresh(uint64_t seed);

 private:
  std::map<int, CUstream_st*> legacy_;
  int chains_ = 0;
};

// The device that cudaSetDevice chose in the calling host thread.
int& CurrentDevice();

}  // namespace cuda_emulation
