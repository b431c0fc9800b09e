#include "tests/cuda_emulation/control.h"

#include <utility>

#include "tests/cuda_emulation/machine.h"

namespace cuda_emulation {

void SetSeed(uint64_t seed) {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  Machine::Get().StartAfresh(seed);
}

void FailCall(int64_t k, cudaError_t error) {
  Machine& machine = Machine::Get();
  std::lock_guard<std::mutex> lock(machine.lock);
  machine.fail_at = machine.calls + k;
  machine.fail_of.clear();
  machine.fail_with = error;
}

void FailCallOf(const std::string& name, int64_t k, cudaError_t error) {
  Machine& machine = Machine::Get();
  std::lock_guard<std::mutex> lock(machine.lock);
  machine.fail_at = machine.calls_of[name] + k;
  machine.fail_of = name;
  machine.fail_with = error;
}

int64_t CallCount() {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  return Machine::Get().calls;
}

std::map<std::string, int64_t> CallCounts() {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  return Machine::Get().calls_of;
}

std::vector<uint64_t> WaitSites() {
  Machine& machine = Machine::Get();
  std::lock_guard<std::mutex> lock(machine.lock);
  return {machine.wait_sites.begin(), machine.wait_sites.end()};
}

void IgnoreWaitsAt(uint64_t site) {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  Machine::Get().ignored_site = site;
}

std::vector<std::string> TakeReports() {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  return std::exchange(Machine::Get().reports, {});
}

void SetDevices(int count, size_t bytes_each, bool can_be_peers) {
  Machine& machine = Machine::Get();
  std::lock_guard<std::mutex> lock(machine.lock);
  machine.devices = count;
  machine.device_bytes = bytes_each;
  machine.can_be_peers = can_be_peers;
  machine.peers.clear();
  machine.copies_by_host = 0;
}

int64_t CopiesByHost() {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  return Machine::Get().copies_by_host;
}

void EpiloguesWantAlignment(bool want) {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  Machine::Get().epilogues_want_alignment = want;
}

void SetPatience(std::chrono::milliseconds patience) {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  Machine::Get().scheduler.patience = patience;
}

LiveObjects CountLiveObjects() {
  Machine& machine = Machine::Get();
  std::lock_guard<std::mutex> lock(machine.lock);
  return {machine.memory.live(), machine.streams.size(), machine.events.size(), machine.graphs.size(),
          machine.graph_execs.size(), machine.dnn_objects.size(), machine.blas_objects};
}

}  // namespace cuda_emulation
