#include "tests/cuda_emulation/machine.h"

#include <cuda_runtime_api.h>

namespace cuda_emulation {

Machine& Machine::Get() {
  static Machine* const machine = new Machine;
  return *machine;
}

CUstream_st& Machine::LegacyStream(int device) {
  CUstream_st*& stream = legacy_[device];
  if (!stream) stream = new CUstream_st{"the legacy stream", device, cudaStreamDefault, 0, NewChain()};
  return *stream;
}

std::vector<int> Machine::ChainsOf(const std::vector<Node>& nodes) {
  std::vector<int> chains;
  std::vector<bool> continued(nodes.size(), false);
  for (const Node& node : nodes) {
    int chain = -1;
    for (const int earlier : node.after) {
      if (chain >= 0 || continued[earlier]) continue;
      continued[earlier] = true;
      chain = chains[earlier];
    }
    chains.push_back(chain >= 0 ? chain : NewChain());
  }
  return chains;
}

CUstream_st* Machine::StreamOf(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return &LegacyStream(CurrentDevice());
  return streams.Has(handle) ? handle : nullptr;
}

cudaError_t Machine::Refuse(cudaError_t error, const std::string& why) {
  reports.push_back(why);
  return error;
}

void Machine::Break(int device, const Failure& failure) {
  reports.push_back(failure.report);
  broken.emplace(device, failure.error);
}

void Machine::StartAfresh(uint64_t seed) {
  random = Random(seed);
  scheduler.StartAfresh();
  memory.ClearCells();
  OperationTable::Get().Clear();
  // Numbers of chains begin anew, too: clocks are as long as the largest.
  chains_ = 0;
  graph_positions.clear();
  const auto renew = [this](CUstream_st& stream) {
    stream.last = nullptr;
    stream.position = 0;
    stream.chain = NewChain();
  };
  for (const auto& stream : streams) renew(*stream);
  for (auto& [device, stream] : legacy_) renew(*stream);
  for (const auto& event : events) event->recorded = nullptr;
  for (const auto& exec : graph_execs) {
    exec->last_launch = nullptr;
    exec->chains = ChainsOf(exec->nodes);
  }
  for (const auto& capture : captures) {
    for (CUstream_st* stream : capture->streams) stream->capture = nullptr, stream->frontier.clear();
  }
  captures.clear();
  for (const auto& forget : at_restart) forget();
  calls = 0;
  calls_of.clear();
  fail_at = 0;
  fail_of.clear();
  wait_sites.clear();
  ignored_site = 0;
  broken.clear();
  reports.clear();
}

int& CurrentDevice() {
  static thread_local int device = 0;
  return device;
}

}  // namespace cuda_emulation
