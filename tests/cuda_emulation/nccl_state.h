// Communicators of the double of NCCL (2.28), what they have under way, and how every call of it begins.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_emulation/call.h"
#include "tests/cuda_emulation/machine.h"
#include "tests/cuda_emulation/operation.h"

namespace cuda_emulation {

struct NcclMessage {
  bool sends;
  int peer;          // kAll: an all-reduce, a sum
  const void* data;  // written by a receive
  size_t count;
  ncclDataType_t type;
  void* result = nullptr;  // of an all-reduce

  static constexpr int kAll = -1;
  bool sums() const { return peer == kAll; }
};

// The messages of one group on one communicator: NCCL runs them as one kernel, which begins, and ends when all are
// over. A graph runs it any number of times.
struct NcclLaunch {
  ncclComm* comm;  // kept by the state as long as the program runs
  std::vector<NcclMessage> messages;
  std::optional<Operation> running;  // what began it
  size_t left = 0;                   // messages that are not over
};

// A message that has begun at one end.
struct NcclEnd {
  std::shared_ptr<NcclLaunch> launch;
  size_t message;
};

// Both ends of the messages from one rank to another.
struct NcclRoute {
  std::deque<NcclEnd> sends, receives;
  bool sender_connects = false, receiver_connects = false;
  bool connected() const { return sender_connects && receiver_connects; }
};

// What all ranks of a communicator share.
struct NcclClique {
  int ranks = 0;
  std::vector<ncclComm*> members;  // null: has not come yet
  std::map<std::pair<int, int>, NcclRoute> routes;
  std::map<int, std::deque<NcclEnd>> sums;  // all-reduces that have begun, by rank
  std::set<int> sum_connects;               // ranks
  bool sums_connected() const { return static_cast<int>(sum_connects.size()) == ranks; }
  struct Split {
    std::map<int, std::pair<int, int>> color_and_key;  // by rank
    std::map<int, ncclComm*> made;                     // by rank; null: no color
    bool complete = false;
  };
  std::deque<Split> splits;  // the k-th call of every rank meets the k-th of the others
  bool complete() const { return ranks == static_cast<int>(members.size()); }
};

}  // namespace cuda_emulation

struct ncclComm {
  enum class Life { kUsed, kFinalized, kDestroyed, kAborted };

  std::shared_ptr<cuda_emulation::NcclClique> clique;
  int rank;
  int device;
  bool blocking;
  Life life = Life::kUsed;
  ncclResult_t error = ncclSuccess;  // asynchronous
  bool broken = false;               // nothing of it goes on

  // What is in progress: what was asked for and has not come about yet.
  bool starts = true;
  ncclComm** split_to = nullptr;
  size_t splits = 0;                                    // calls so far
  std::shared_ptr<cuda_emulation::NcclLaunch> waiting;  // a group that is not on its stream yet
  CUstream_st* waiting_for = nullptr;
  size_t polls = 0;  // questions that still find it in progress

  std::shared_ptr<cuda_emulation::NcclLaunch> running;
  uint32_t last_run = 0;  // of the launch before; 0: none
  int64_t enqueued = 0;   // launches outside of graphs that have not ended

  bool in_progress() const { return starts || split_to != nullptr || waiting != nullptr; }
};

namespace cuda_emulation {

class NcclState {
 public:
  static NcclState& Get();

  std::map<std::string, std::shared_ptr<NcclClique>> cliques;  // by identifier
  std::vector<std::unique_ptr<ncclComm>> comms;                // those that are gone too
  uint64_t identifiers = 0;
  std::string last_error;

  // Of SetSeed: communicators stay.
  void ForgetLaunches();
  ncclComm* Add(std::shared_ptr<NcclClique> clique, int rank, int device, bool blocking, Machine& machine);
  ncclResult_t Refuse(Machine& machine, ncclResult_t result, const std::string& why);
  // Refuses what is no communicator, is gone, or, `unless_idle`, has something in progress.
  ncclResult_t Check(Machine& machine, const ncclComm* comm, const char* name, bool unless_idle);
  // Moves on what the communicator has in progress.
  void Progress(Machine& machine, ncclComm& comm);
  // Until nothing is in progress, letting other threads make their calls; ncclInternalError when none does.
  ncclResult_t Wait(Machine& machine, ncclComm& comm, std::unique_lock<std::mutex>& lock);
};

// Gives the group that waits to its stream. nccl_launch.cc.
ncclResult_t EnqueueGroup(Machine& machine, ncclComm& comm);
// Its launches end, whatever the peers do.
void EndLaunches(ncclComm& comm);
// Whether a graph that lives has messages of it. nccl_launch.cc.
bool InAGraph(const Machine& machine, const ncclComm& comm);

// The communicators that the calling host thread has aborted in a group that has not ended; null: it is in none.
// nccl_groups.cc.
std::vector<const ncclComm*>* AbortedInGroup();
// Reports what would make the abort of these, together, wait for ever. nccl_communicators.cc.
void CheckAborts(Machine& machine, const std::vector<const ncclComm*>& comms);

// The body of a call; where CUDA's own call would fail, NCCL's returns ncclUnhandledCudaError.
template <typename Body>
ncclResult_t NcclCall(const char* name, Body&& body) {
  ncclResult_t result = ncclUnhandledCudaError;
  const cudaError_t error = Call(name, [&](Machine& machine, std::unique_lock<std::mutex>& lock) {
    result = body(machine, lock);
    return cudaSuccess;
  });
  return error == cudaSuccess ? result : ncclUnhandledCudaError;
}

// The same for calls that give something back: they do in any case.
template <typename Body>
ncclResult_t NcclReleaseCall(const char* name, Body&& body) {
  ncclResult_t result = ncclUnhandledCudaError;
  const cudaError_t error = ReleaseCall(name, [&](Machine& machine, bool) {
    result = body(machine);
    return cudaSuccess;
  });
  return error == cudaSuccess ? result : ncclUnhandledCudaError;
}

}  // namespace cuda_emulation
