#include "tests/cuda_emulation/waiting.h"

#include <chrono>

namespace cuda_emulation {
namespace {

constexpr std::chrono::milliseconds kMoment(1);

cudaError_t StateOf(const Machine& machine, int device) {
  auto broken = machine.broken.find(device);
  return broken == machine.broken.end() ? cudaSuccess : broken->second;
}

}  // namespace

cudaError_t WaitFor(Machine& machine, const std::shared_ptr<Operation>& operation,
                    std::unique_lock<std::mutex>& lock) {
  if (!operation) return cudaSuccess;
  const std::shared_ptr<Operation> held = operation;
  if (!machine.scheduler.RunUntil(held, lock)) return cudaErrorLaunchTimeout;
  machine.scheduler.HostWaitedFor(*held);
  return StateOf(machine, held->device);
}

cudaError_t Ask(Machine& machine, const std::shared_ptr<Operation>& operation, int device,
                std::unique_lock<std::mutex>& lock) {
  if (!operation) return cudaSuccess;
  if (!machine.scheduler.RunSome() && !operation->done) machine.enqueued.wait_for(lock, kMoment);
  if (!operation->done) return cudaErrorNotReady;
  machine.scheduler.HostWaitedFor(*operation);
  return StateOf(machine, device);
}

}  // namespace cuda_emulation
