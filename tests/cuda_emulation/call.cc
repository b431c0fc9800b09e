#include "tests/cuda_emulation/call.h"

#include <string>

#include "tests/cuda_emulation/capture.h"

namespace cuda_emulation {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

cudaError_t Note(cudaError_t error) {
  // "Not ready" is an answer, no error.
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

bool& InHostFunction() {
  static thread_local bool inside = false;
  return inside;
}

std::optional<cudaError_t> CountCall(Machine& machine, const char* name) {
  ++machine.calls;
  const int64_t number = ++machine.calls_of[name];
  if ((machine.fail_of.empty() ? machine.calls : machine.fail_of == name ? number : -1) == machine.fail_at) {
    machine.reports.push_back(std::string(name) + ": the injected error, at call " +
                              std::to_string(machine.calls));
    return machine.fail_with;
  }
  return std::nullopt;
}

std::optional<cudaError_t> BeginCall(Machine& machine, const char* name) {
  if (const std::optional<cudaError_t> error = CountCall(machine, name)) return error;
  auto broken = machine.broken.find(CurrentDevice());
  if (broken != machine.broken.end()) return broken->second;
  return std::nullopt;
}

std::optional<cudaError_t> RefuseInCapture(Machine& machine, const char* name) {
  const cudaStreamCaptureMode own = ThreadCaptureMode();
  if (own == cudaStreamCaptureModeRelaxed) return std::nullopt;
  bool refused = false;
  for (const auto& capture : machine.captures) {
    const bool mine =
        capture->thread == std::this_thread::get_id() && capture->mode != cudaStreamCaptureModeRelaxed;
    if (!mine && (own != cudaStreamCaptureModeGlobal || capture->mode != cudaStreamCaptureModeGlobal))
      continue;
    capture->valid = false;
    refused = true;
  }
  if (!refused) return std::nullopt;
  return machine.Refuse(cudaErrorStreamCaptureUnsupported,
                        std::string(name) + " while a stream is capturing");
}

extern "C" cudaError_t cudaGetLastError() {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  auto broken = Machine::Get().broken.find(CurrentDevice());
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return broken != Machine::Get().broken.end() ? broken->second : error;
}

extern "C" cudaError_t cudaPeekAtLastError() {
  std::lock_guard<std::mutex> lock(Machine::Get().lock);
  auto broken = Machine::Get().broken.find(CurrentDevice());
  return broken != Machine::Get().broken.end() ? broken->second : last_error;
}

}  // namespace cuda_emulation
