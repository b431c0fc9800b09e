// Doubles of NCCL's calls that make and end communicators (NCCL user guide, "Creating a Communicator", "Fault
// Tolerance").
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "tests/cuda_emulation/nccl_control.h"
#include "tests/cuda_emulation/nccl_state.h"

namespace cuda_emulation {
namespace {

constexpr std::chrono::milliseconds kMoment(1);
constexpr char kGraphLives[] = " would never end: a graph has messages of the communicator, which waits for its end";

bool RightConfig(const ncclConfig_t* config) {
  const ncclConfig_t right = NCCL_CONFIG_INITIALIZER;
  return config == nullptr ||
         (config->size == right.size && config->magic == right.magic && config->version == right.version);
}

// Puts the ranks of one color, by key and then by rank, into a clique of their own.
void MakeChildren(Machine& machine, NcclState& state, NcclClique& parent, NcclClique::Split& split) {
  std::map<int, std::vector<std::pair<int, int>>> ranks_of_color;  // (key, rank)
  for (const auto& [rank, asked] : split.color_and_key) {
    split.made[rank] = nullptr;
    if (asked.first != NCCL_SPLIT_NOCOLOR) ranks_of_color[asked.first].push_back({asked.second, rank});
  }
  for (auto& [color, members] : ranks_of_color) {
    std::sort(members.begin(), members.end());
    auto clique = std::make_shared<NcclClique>();
    clique->ranks = static_cast<int>(members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      const ncclComm& old = *parent.members[members[i].second];
      ncclComm* const made = state.Add(clique, static_cast<int>(i), old.device, old.blocking, machine);
      if (old.life == ncclComm::Life::kAborted) made->life = old.life;
      clique->members.push_back(made);
      split.made[members[i].second] = made;
    }
  }
  split.complete = true;
}

}  // namespace

NcclState& NcclState::Get() {
  static NcclState* const state = [] {
    auto* const made = new NcclState;
    Machine::Get().at_restart.push_back([made] { made->ForgetLaunches(); });
    return made;
  }();
  return *state;
}

void NcclState::ForgetLaunches() {
  for (const auto& comm : comms) {
    comm->running = nullptr;
    comm->waiting = nullptr;
    comm->last_run = 0;
    comm->enqueued = 0;
    for (auto& [ranks, route] : comm->clique->routes) {
      route.sends.clear();
      route.receives.clear();
    }
    comm->clique->sums.clear();
  }
}

ncclComm* NcclState::Add(std::shared_ptr<NcclClique> clique, int rank, int device, bool blocking,
                         Machine& machine) {
  comms.push_back(std::make_unique<ncclComm>(ncclComm{std::move(clique), rank, device, blocking}));
  comms.back()->polls = machine.random.Below(4);
  return comms.back().get();
}

ncclResult_t NcclState::Refuse(Machine& machine, ncclResult_t result, const std::string& why) {
  machine.reports.push_back(why);
  last_error = why;
  return result;
}

ncclResult_t NcclState::Check(Machine& machine, const ncclComm* comm, const char* name, bool unless_idle) {
  const std::string what = name;
  if (std::none_of(comms.begin(), comms.end(), [&](const auto& each) { return each.get() == comm; }))
    return Refuse(machine, ncclInvalidArgument, what + " of what is no communicator");
  if (comm->life == ncclComm::Life::kDestroyed || comm->life == ncclComm::Life::kAborted)
    return Refuse(machine, ncclInvalidArgument, what + " of a communicator that is gone");
  if (unless_idle && comm->life == ncclComm::Life::kFinalized)
    return Refuse(machine, ncclInvalidUsage, what + " of a communicator that is finalized");
  if (unless_idle && comm->in_progress()) {
    return Refuse(machine, ncclInvalidUsage,
                  what + " of a communicator whose last call is still in progress");
  }
  return ncclSuccess;
}

void NcclState::Progress(Machine& machine, ncclComm& comm) {
  if (!comm.in_progress() || comm.broken) return;
  if (comm.polls > 0) {
    --comm.polls;
    return;
  }
  if (comm.starts) {
    if (comm.clique->complete()) comm.starts = false;
    return;
  }
  if (comm.split_to != nullptr) {
    NcclClique::Split& split = comm.clique->splits[comm.splits - 1];
    if (!split.complete) return;
    *comm.split_to = split.made[comm.rank];
    comm.split_to = nullptr;
    return;
  }
  for (const NcclMessage& message : comm.waiting->messages) {
    if (message.sums()) {
      if (!comm.clique->sums_connected()) return;
      continue;
    }
    const std::pair<int, int> route =
        message.sends ? std::pair(comm.rank, message.peer) : std::pair(message.peer, comm.rank);
    if (!comm.clique->routes[route].connected()) return;
  }
  if (const ncclResult_t result = EnqueueGroup(machine, comm); result != ncclSuccess) comm.error = result;
}

ncclResult_t NcclState::Wait(Machine& machine, ncclComm& comm, std::unique_lock<std::mutex>& lock) {
  const auto limit = std::chrono::steady_clock::now() + machine.scheduler.patience;
  while (comm.in_progress()) {
    Progress(machine, comm);
    if (!comm.in_progress()) break;
    if (std::chrono::steady_clock::now() > limit)
      return Refuse(machine, ncclInternalError,
                    "a blocking call of NCCL would never end: a rank does not come");
    machine.enqueued.wait_for(lock, kMoment);
  }
  return comm.error;
}

// NCCL waits until no graph refers to a communicator (commDestroySync in its init.cc, for aborts too), and gives
// memory back, for which CUDA may wait for all that runs on the device: kernels of other communicators end only when
// those are aborted, in the same group (NVIDIA/nccl issue 1013).
void CheckAborts(Machine& machine, const std::vector<const ncclComm*>& comms) {
  for (const ncclComm* const comm : comms) {
    if (InAGraph(machine, *comm)) machine.reports.push_back("ncclCommAbort" + std::string(kGraphLives));
    for (const auto& other : NcclState::Get().comms) {
      if (other->device != comm->device || other->life == ncclComm::Life::kAborted || other->broken) continue;
      if (!other->running || other->running->left == 0 || machine.broken.count(other->device) > 0) continue;
      machine.reports.push_back(
          "ncclCommAbort may never end: messages of another communicator, which is not aborted in the same group, "
          "wait on its device");
    }
  }
}

void BreakCommunicators(int device, ncclResult_t error) {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  for (const auto& comm : NcclState::Get().comms) {
    if (comm->device != device) continue;
    comm->broken = true;
    comm->error = error;
  }
}

size_t LiveCommunicators() {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  const auto& comms = NcclState::Get().comms;
  return std::count_if(comms.begin(), comms.end(),
                       [](const auto& comm) { return comm->life <= ncclComm::Life::kFinalized; });
}

extern "C" ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

extern "C" const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

extern "C" const char* ncclGetLastError(ncclComm_t) {
  static thread_local std::string text;
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  text = NcclState::Get().last_error;
  return text.c_str();
}

extern "C" ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return NcclCall("ncclGetUniqueId", [&](Machine&, auto&) {
    std::memset(id, 0, sizeof *id);
    const uint64_t number = ++NcclState::Get().identifiers;
    std::memcpy(id->internal, &number, sizeof number);
    return ncclSuccess;
  });
}

extern "C" ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank,
                                               ncclConfig_t* config) {
  return NcclCall("ncclCommInitRankConfig", [&](Machine& machine, std::unique_lock<std::mutex>& lock) {
    NcclState& state = NcclState::Get();
    *made = nullptr;
    if (!RightConfig(config))
      return state.Refuse(machine, ncclInvalidArgument,
                          "a configuration that NCCL_CONFIG_INITIALIZER did not begin");
    if (ranks < 1 || rank < 0 || rank >= ranks) {
      return state.Refuse(machine, ncclInvalidArgument,
                          "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
    }
    std::shared_ptr<NcclClique>& clique = state.cliques[std::string(id.internal, sizeof id.internal)];
    if (clique == nullptr) {
      clique = std::make_shared<NcclClique>();
      clique->ranks = ranks;
    }
    if (clique->ranks != ranks)
      return state.Refuse(machine, ncclInvalidArgument,
                          "ranks of one identifier disagree on how many they are");
    for (const ncclComm* other : clique->members) {
      if (other->rank == rank) return state.Refuse(machine, ncclInvalidUsage, "a rank comes twice");
      if (other->device == CurrentDevice()) {
        return state.Refuse(machine, ncclInvalidUsage,
                            "duplicate GPU: ranks " + std::to_string(other->rank) + " and " +
                                std::to_string(rank) + " are both on device " +
                                std::to_string(other->device));
      }
    }
    const bool blocking = config == nullptr || config->blocking != 0;
    *made = state.Add(clique, rank, CurrentDevice(), blocking, machine);
    clique->members.push_back(*made);
    if (clique->complete()) {
      std::sort(clique->members.begin(), clique->members.end(),
                [](const ncclComm* a, const ncclComm* b) { return a->rank < b->rank; });
    }
    machine.enqueued.notify_all();
    return blocking ? state.Wait(machine, **made, lock) : ncclInProgress;
  });
}

extern "C" ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                                      ncclConfig_t* config) {
  return NcclCall("ncclCommSplit", [&](Machine& machine, std::unique_lock<std::mutex>& lock) {
    NcclState& state = NcclState::Get();
    if (const ncclResult_t result = state.Check(machine, comm, "ncclCommSplit", true); result != ncclSuccess)
      return result;
    if (!RightConfig(config))
      return state.Refuse(machine, ncclInvalidArgument,
                          "a configuration that NCCL_CONFIG_INITIALIZER did not begin");
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
      return state.Refuse(machine, ncclInvalidArgument, "ncclCommSplit with a negative color");
    NcclClique& clique = *comm->clique;
    if (clique.splits.size() == comm->splits) clique.splits.emplace_back();
    NcclClique::Split& split = clique.splits[comm->splits++];
    split.color_and_key[comm->rank] = {color, key};
    comm->split_to = made;
    comm->polls = machine.random.Below(4);
    if (static_cast<int>(split.color_and_key.size()) == clique.ranks)
      MakeChildren(machine, state, clique, split);
    machine.enqueued.notify_all();
    return comm->blocking ? state.Wait(machine, *comm, lock) : ncclInProgress;
  });
}

extern "C" ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return NcclCall("ncclCommCount", [&](Machine& machine, auto&) {
    const ncclResult_t result = NcclState::Get().Check(machine, comm, "ncclCommCount", true);
    if (result == ncclSuccess) *count = comm->clique->ranks;
    return result;
  });
}

// In progress until all that was issued has run and every rank has asked for it.
extern "C" ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return NcclCall("ncclCommFinalize", [&](Machine& machine, auto&) {
    NcclState& state = NcclState::Get();
    if (const ncclResult_t result = state.Check(machine, comm, "ncclCommFinalize", true);
        result != ncclSuccess)
      return result;
    comm->life = ncclComm::Life::kFinalized;
    machine.enqueued.notify_all();
    return comm->blocking ? ncclSuccess : ncclInProgress;
  });
}

extern "C" ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return NcclCall("ncclCommGetAsyncError", [&](Machine& machine, std::unique_lock<std::mutex>& lock) {
    NcclState& state = NcclState::Get();
    if (const ncclResult_t result = state.Check(machine, comm, "ncclCommGetAsyncError", false);
        result != ncclSuccess)
      return result;
    state.Progress(machine, *comm);
    const auto& members = comm->clique->members;
    const auto unfinished = [comm, &members] {
      return comm->life == ncclComm::Life::kFinalized &&
             (comm->enqueued > 0 || std::any_of(members.begin(), members.end(), [](const ncclComm* member) {
                return member->life == ncclComm::Life::kUsed;
              }));
    };
    if (comm->error == ncclSuccess && (comm->in_progress() || unfinished()) && !machine.scheduler.RunSome())
      machine.enqueued.wait_for(lock, kMoment);
    *error = comm->error != ncclSuccess            ? comm->error
             : comm->in_progress() || unfinished() ? ncclInProgress
                                                   : ncclSuccess;
    return ncclSuccess;
  });
}

extern "C" ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return NcclReleaseCall("ncclCommDestroy", [&](Machine& machine) {
    NcclState& state = NcclState::Get();
    if (const ncclResult_t result = state.Check(machine, comm, "ncclCommDestroy", false);
        result != ncclSuccess)
      return result;
    const bool busy = comm->enqueued > 0 || comm->in_progress();
    if (InAGraph(machine, *comm)) machine.reports.push_back("ncclCommDestroy" + std::string(kGraphLives));
    comm->life = ncclComm::Life::kDestroyed;
    return busy ? state.Refuse(machine, ncclInvalidUsage,
                               "ncclCommDestroy of a communicator that has work under way")
                : ncclSuccess;
  });
}

extern "C" ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return NcclReleaseCall("ncclCommAbort", [&](Machine& machine) {
    NcclState& state = NcclState::Get();
    if (const ncclResult_t result = state.Check(machine, comm, "ncclCommAbort", false); result != ncclSuccess)
      return result;
    comm->life = ncclComm::Life::kAborted;
    EndLaunches(*comm);
    // A child that was not handed out goes with it.
    const auto& splits = comm->clique->splits;
    if (comm->split_to != nullptr && splits[comm->splits - 1].complete) {
      if (ncclComm* const child = splits[comm->splits - 1].made.at(comm->rank)) child->life = ncclComm::Life::kAborted;
    }
    machine.enqueued.notify_all();
    if (std::vector<const ncclComm*>* const together = AbortedInGroup()) {
      together->push_back(comm);
    } else {
      CheckAborts(machine, {comm});
    }
    return ncclSuccess;
  });
}

}  // namespace cuda_emulation
