// How a group of messages runs: its kernel begins, meets what the peers have begun, in order, and ends when all its
// messages are over. NCCL has buffers on the way whose size it does not promise; here there are none, so a send
// ends when it is received.
#include <algorithm>
#include <cstring>
#include <string>

#include "tests/cuda_emulation/capture.h"
#include "tests/cuda_emulation/nccl_state.h"
#include "tests/cuda_emulation/transfer.h"

namespace cuda_emulation {
namespace {

size_t SizeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      return 1;
  }
}

std::string Describe(const NcclMessage& message, int from, int to) {
  return std::to_string(message.count) + " elements of " + std::to_string(SizeOf(message.type)) +
         " bytes from rank " + std::to_string(from) + " to " + std::to_string(to);
}

// The two ends have begun. What is wrong with one of them breaks that one's device.
void Transfer(Machine& machine, const NcclEnd& from, const NcclEnd& to) {
  const NcclMessage &sent = from.launch->messages[from.message], &got = to.launch->messages[to.message];
  const ncclComm &sender = *from.launch->comm, &receiver = *to.launch->comm;
  const size_t bytes = sent.count * SizeOf(sent.type);
  if (sent.count != got.count || sent.type != got.type) {
    const Failure failure{cudaErrorLaunchFailure,
                          "messages that do not match: sent " + Describe(sent, sender.rank, receiver.rank) +
                              ", awaited " + Describe(got, sender.rank, receiver.rank)};
    for (const ncclComm* end : {&sender, &receiver}) machine.Break(end->device, failure);
    return;
  }
  const Operation &read = *from.launch->running, &write = *to.launch->running;
  if (const auto failure = CheckRange(read, sent.data, bytes, Access::kRead)) {
    machine.Break(sender.device, {failure->error, read.name + ": " + failure->report});
  } else if (const auto other = CheckRange(write, got.data, bytes, Access::kWrite)) {
    machine.Break(receiver.device, {other->error, write.name + ": " + other->report});
  } else if (bytes > 0) {
    std::memcpy(const_cast<void*>(got.data), sent.data, bytes);
  }
  --from.launch->left;
  --to.launch->left;
}

// All ranks have begun: adds in an order that nobody may rely on, the same for all, and gives everybody the result.
template <typename T>
void AddUp(Machine& machine, const std::vector<NcclEnd>& ends, size_t count) {
  std::vector<T> sum(count, 0);
  const size_t first = machine.random.Below(ends.size());
  for (size_t k = 0; k < ends.size(); ++k) {
    const NcclEnd& end = ends[(first + k) % ends.size()];
    const T* const own = static_cast<const T*>(end.launch->messages[end.message].data);
    for (size_t i = 0; i < count; ++i) sum[i] = k == 0 ? own[i] : sum[i] + own[i];
  }
  for (const NcclEnd& end : ends) {
    void* const result = end.launch->messages[end.message].result;
    if (count > 0) std::memcpy(result, sum.data(), count * sizeof(T));
  }
}

void AllReduce(Machine& machine, const std::vector<NcclEnd>& ends) {
  const NcclMessage& first = ends[0].launch->messages[ends[0].message];
  const size_t bytes = first.count * SizeOf(first.type);
  bool sound = true;
  for (const NcclEnd& end : ends) {
    const NcclMessage& own = end.launch->messages[end.message];
    const Operation& operation = *end.launch->running;
    if (own.count != first.count || own.type != first.type) {
      const Failure failure{cudaErrorLaunchFailure, "sums that do not match: " + std::to_string(own.count) +
                                                        " elements on rank " +
                                                        std::to_string(end.launch->comm->rank) + ", " +
                                                        std::to_string(first.count) + " on another"};
      for (const NcclEnd& each : ends) machine.Break(each.launch->comm->device, failure);
      return;
    }
    for (const auto& [data, access] :
         {std::pair(own.data, Access::kRead), std::pair<const void*, Access>(own.result, Access::kWrite)}) {
      if (const auto failure = CheckRange(operation, data, bytes, access)) {
        machine.Break(end.launch->comm->device, {failure->error, operation.name + ": " + failure->report});
        sound = false;
      }
    }
  }
  if (sound)
    first.type == ncclFloat32 ? AddUp<float>(machine, ends, first.count)
                              : AddUp<double>(machine, ends, first.count);
  for (const NcclEnd& end : ends) --end.launch->left;
}

// An end of a sum has begun; when all have, it is made.
void BeginSum(Machine& machine, NcclClique& clique, const NcclEnd& own) {
  clique.sums[own.launch->comm->rank].push_back(own);
  std::vector<NcclEnd> ends;
  for (auto& [rank, begun] : clique.sums) {
    if (!begun.empty()) ends.push_back(begun.front());
  }
  if (static_cast<int>(ends.size()) < clique.ranks) return;
  for (auto& [rank, begun] : clique.sums) begun.pop_front();
  AllReduce(machine, ends);
}

std::optional<Failure> Begin(const std::shared_ptr<NcclLaunch>& launch, const Operation& operation) {
  ncclComm& comm = *launch->comm;
  if (comm.life == ncclComm::Life::kDestroyed)
    return Failure{cudaErrorIllegalAddress, "its communicator has been destroyed"};
  launch->running = operation;
  launch->left = launch->messages.size();
  if (comm.life == ncclComm::Life::kAborted) launch->left = 0;
  if (comm.running || (comm.last_run != 0 && !operation.After(comm.last_run))) {
    return Failure{cudaErrorLaunchFailure,
                   "it may run beside an earlier one of the same communicator: nothing orders the two"};
  }
  comm.running = launch;
  comm.last_run = operation.run;
  if (comm.broken || launch->left == 0) return std::nullopt;
  for (size_t m = 0; m < launch->messages.size(); ++m) {
    const NcclMessage& message = launch->messages[m];
    if (message.sums()) {
      BeginSum(Machine::Get(), *comm.clique, {launch, m});
      continue;
    }
    NcclRoute& route =
        comm.clique
            ->routes[message.sends ? std::pair(comm.rank, message.peer) : std::pair(message.peer, comm.rank)];
    (message.sends ? route.sends : route.receives).push_back({launch, m});
    if (route.sends.empty() || route.receives.empty()) continue;
    const NcclEnd from = route.sends.front(), to = route.receives.front();
    route.sends.pop_front();
    route.receives.pop_front();
    Transfer(Machine::Get(), from, to);
  }
  return std::nullopt;
}

// The work of a launch: its begin and its end.
struct BeginLaunch {
  std::shared_ptr<NcclLaunch> launch;
  std::optional<Failure> operator()(const Operation& operation) const { return Begin(launch, operation); }
};
struct EndLaunch {
  std::shared_ptr<NcclLaunch> launch;
  bool once;
  std::optional<Failure> operator()(const Operation& operation) const {
    ncclComm& comm = *launch->comm;
    comm.running = nullptr;
    comm.last_run = operation.run;
    comm.enqueued -= once;
    return std::nullopt;
  }
};

}  // namespace

ncclResult_t EnqueueGroup(Machine& machine, ncclComm& comm) {
  const std::shared_ptr<NcclLaunch> launch = std::move(comm.waiting);
  comm.waiting = nullptr;
  CUstream_st& stream = *comm.waiting_for;
  const bool once = !stream.capture;
  const std::string name =
      "messages of rank " + std::to_string(comm.rank) + " of " + std::to_string(comm.clique->ranks);
  comm.enqueued += once;
  const cudaError_t begun = Submit(machine, stream, name, cudaGraphNodeTypeKernel, BeginLaunch{launch});
  if (begun != cudaSuccess) return ncclUnhandledCudaError;
  const cudaError_t ended = Submit(machine, stream, "the end of " + name, cudaGraphNodeTypeKernel,
                                   EndLaunch{launch, once}, [launch] { return launch->left == 0; });
  return ended == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

bool InAGraph(const Machine& machine, const ncclComm& comm) {
  const auto uses = [&comm](const Node& node) {
    const auto* const begin = node.work.target<BeginLaunch>();
    return begin != nullptr && begin->launch->comm == &comm;
  };
  const auto any = [&uses](const auto& graphs) {
    return std::any_of(graphs.begin(), graphs.end(), [&uses](const auto& graph) {
      return std::any_of(graph->nodes.begin(), graph->nodes.end(), uses);
    });
  };
  return any(machine.graphs) || any(machine.graph_execs);
}

void EndLaunches(ncclComm& comm) {
  for (auto& [ranks, route] : comm.clique->routes) {
    for (std::deque<NcclEnd>* ends : {&route.sends, &route.receives}) {
      std::erase_if(*ends, [&comm](const NcclEnd& end) { return end.launch->comm == &comm; });
    }
  }
  comm.clique->sums[comm.rank].clear();
  if (comm.running) comm.running->left = 0;
  comm.waiting = nullptr;
}

}  // namespace cuda_emulation
