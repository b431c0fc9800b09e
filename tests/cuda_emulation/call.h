// How every double of a CUDA call begins: the lock, the count, the injected error, the fault that lies before.
#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <optional>
#include <utility>

#include "tests/cuda_emulation/machine.h"

namespace cuda_emulation {

// Makes the error this host thread's last one, and returns it.
cudaError_t Note(cudaError_t error);
// In a host function that a stream runs: it must make no CUDA call.
bool& InHostFunction();
// Counts the call; the injected error, if it is to return that.
std::optional<cudaError_t> CountCall(Machine& machine, const char* name);
// The same, or the error that broke the current device.
std::optional<cudaError_t> BeginCall(Machine& machine, const char* name);
// Calls that are unsafe in a capture are refused where one is going on, and end it
// (cudaThreadExchangeStreamCaptureMode).
std::optional<cudaError_t> RefuseInCapture(Machine& machine, const char* name);

// `body(machine, lock)` is the call itself.
template <typename Body>
cudaError_t Call(const char* name, Body&& body) {
  if (InHostFunction()) return Note(cudaErrorNotPermitted);
  Machine& machine = Machine::Get();
  std::unique_lock<std::mutex> lock(machine.lock);
  if (const std::optional<cudaError_t> error = BeginCall(machine, name)) return Note(*error);
  return Note(body(machine, lock));
}

// The same for calls that a broken device answers all the same.
template <typename Body>
cudaError_t DeviceCall(const char* name, Body&& body) {
  if (InHostFunction()) return Note(cudaErrorNotPermitted);
  Machine& machine = Machine::Get();
  std::unique_lock<std::mutex> lock(machine.lock);
  if (const std::optional<cudaError_t> error = CountCall(machine, name)) return Note(*error);
  return Note(body(machine));
}

// The same for calls that are unsafe in a capture.
template <typename Body>
cudaError_t UnsafeCall(const char* name, Body&& body) {
  return Call(name, [&](Machine& machine, std::unique_lock<std::mutex>& lock) {
    if (const std::optional<cudaError_t> error = RefuseInCapture(machine, name)) return *error;
    return body(machine, lock);
  });
}

// The same for calls that give something back: they do, and then return the error that lies before, if there is one.
// `body(machine, failed)`: the call returns an error in any case if `failed`.
template <typename Body>
cudaError_t ReleaseCall(const char* name, Body&& body) {
  if (InHostFunction()) return Note(cudaErrorNotPermitted);
  Machine& machine = Machine::Get();
  std::unique_lock<std::mutex> lock(machine.lock);
  const std::optional<cudaError_t> error = BeginCall(machine, name);
  const cudaError_t result = body(machine, error.has_value());
  return Note(error ? *error : result);
}

}  // namespace cuda_emulation
