// Doubles of NCCL's calls that send, receive and add up, alone or in a group (NCCL user guide, "Group Calls",
// "Point-to-point communication", "Collective Operations").
#include <algorithm>
#include <string>

#include "tests/cuda_emulation/nccl_state.h"

namespace cuda_emulation {
namespace {

struct Asked {
  ncclComm* comm;
  CUstream_st* stream;
  NcclMessage message;
};

// Of the calling host thread.
struct Group {
  int depth = 0;
  std::vector<Asked> asked;
  std::vector<const ncclComm*> aborted;
  ncclResult_t refused = ncclSuccess;  // of a call inside
};
thread_local Group group;

ncclResult_t Give(Machine& machine, std::unique_lock<std::mutex>& lock) {
  NcclState& state = NcclState::Get();
  std::vector<Asked> asked;
  asked.swap(group.asked);
  if (const ncclResult_t refused = std::exchange(group.refused, ncclSuccess); refused != ncclSuccess)
    return refused;
  std::vector<ncclComm*> comms;
  for (const Asked& each : asked) {
    ncclComm& comm = *each.comm;
    const bool sums = each.message.sums();
    NcclRoute* const route =
        sums ? nullptr
             : &comm.clique->routes[each.message.sends ? std::pair(comm.rank, each.message.peer)
                                                       : std::pair(each.message.peer, comm.rank)];
    if (each.stream->capture && !(sums ? comm.clique->sums_connected() : route->connected())) {
      each.stream->capture->valid = false;
      return state.Refuse(
          machine, ncclInvalidUsage,
          "the first message between two ranks is captured: they connect then, which a graph cannot");
    }
    if (comm.waiting && comm.waiting_for != each.stream)
      return state.Refuse(machine, ncclInvalidUsage, "one group uses one communicator on two streams");
    if (!comm.waiting) {
      comm.waiting = std::make_shared<NcclLaunch>(NcclLaunch{&comm, {}, std::nullopt});
      comm.waiting_for = each.stream;
      comm.polls = machine.random.Below(4);
      comms.push_back(&comm);
    }
    comm.waiting->messages.push_back(each.message);
    if (sums) {
      comm.clique->sum_connects.insert(comm.rank);
    } else {
      (each.message.sends ? route->sender_connects : route->receiver_connects) = true;
    }
  }
  machine.enqueued.notify_all();
  ncclResult_t result = ncclSuccess;
  for (ncclComm* comm : comms) {
    if (comm->blocking) {
      if (const ncclResult_t waited = state.Wait(machine, *comm, lock); waited != ncclSuccess) return waited;
    } else {
      result = ncclInProgress;
    }
  }
  return result;
}

ncclResult_t Ask(const char* name, ncclComm_t comm, cudaStream_t stream, const NcclMessage& message) {
  return NcclCall(name, [&](Machine& machine, std::unique_lock<std::mutex>& lock) {
    NcclState& state = NcclState::Get();
    const auto check = [&]() -> ncclResult_t {
      const std::string what = name;
      if (const ncclResult_t result = state.Check(machine, comm, name, true); result != ncclSuccess)
        return result;
      if (comm->error != ncclSuccess) return comm->error;
      const bool peer_exists =
          message.peer >= 0 && message.peer < comm->clique->ranks && message.peer != comm->rank;
      if (!message.sums() && !peer_exists) {
        return state.Refuse(machine, ncclInvalidArgument,
                            what + ": peer " + std::to_string(message.peer) + " of rank " +
                                std::to_string(comm->rank) + " of " + std::to_string(comm->clique->ranks));
      }
      if (message.sums() && ((message.type != ncclFloat32 && message.type != ncclFloat64) ||
                             (message.result == nullptr && message.count > 0))) {
        return state.Refuse(machine, ncclInvalidArgument,
                            what + " of no memory, or of a type or an operation that this double has not");
      }
      if (message.type < 0 || message.type >= ncclNumTypes || (message.data == nullptr && message.count > 0))
        return state.Refuse(machine, ncclInvalidArgument, what + " of no memory or an unknown type");
      const CUstream_st* const live = machine.StreamOf(stream);
      if (live == nullptr || live != stream)
        return state.Refuse(machine, ncclInvalidArgument,
                            what + " on a stream that lives no more, or the legacy one");
      if (live->device != comm->device)
        return state.Refuse(machine, ncclInvalidUsage,
                            what + " on a stream of another device than the communicator's");
      return ncclSuccess;
    };
    const ncclResult_t result = check();
    if (group.depth > 0 && result != ncclSuccess && group.refused == ncclSuccess) group.refused = result;
    if (result != ncclSuccess) return result;
    group.asked.push_back({comm, stream, message});
    return group.depth > 0 ? ncclSuccess : Give(machine, lock);
  });
}

}  // namespace

std::vector<const ncclComm*>* AbortedInGroup() { return group.depth > 0 ? &group.aborted : nullptr; }

extern "C" ncclResult_t ncclGroupStart() {
  return NcclCall("ncclGroupStart", [&](Machine&, auto&) {
    ++group.depth;
    return ncclSuccess;
  });
}

extern "C" ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) {
    return NcclCall("ncclGroupEnd", [&](Machine& machine, auto&) {
      return NcclState::Get().Refuse(machine, ncclInvalidUsage, "ncclGroupEnd of a group that has not begun");
    });
  }
  const bool last = --group.depth == 0;
  const ncclResult_t result =
      NcclCall("ncclGroupEnd", [&](Machine& machine, std::unique_lock<std::mutex>& lock) {
        if (!last) return ncclSuccess;
        CheckAborts(machine, std::exchange(group.aborted, {}));
        return Give(machine, lock);
      });
  if (last) group.asked.clear(), group.aborted.clear();  // of a group whose end failed
  return result;
}

extern "C" ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer,
                                 ncclComm_t comm, cudaStream_t stream) {
  return Ask("ncclSend", comm, stream, {true, peer, data, count, type});
}

extern "C" ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                                 cudaStream_t stream) {
  return Ask("ncclRecv", comm, stream, {false, peer, data, count, type});
}

extern "C" ncclResult_t ncclAllReduce(const void* data, void* result, size_t count, ncclDataType_t type,
                                      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  const ncclDataType_t summed = op == ncclSum ? type : ncclNumTypes;
  return Ask("ncclAllReduce", comm, stream, {true, NcclMessage::kAll, data, count, summed, result});
}

}  // namespace cuda_emulation
