#include "runtime/device/cuda/kernels/update_gate.h"

#include <cmath>

#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

__global__ void Close(const double* a, const double* b, UpdateGate* gate) {
  const auto finite = [](const double* value) { return value == nullptr || fabs(*value) < INFINITY; };
  if (!finite(a) || !finite(b)) *gate = 1;
}

}  // namespace

absl::Status CloseUnlessFinite(cudaStream_t stream, const double* a, const double* b, UpdateGate* gate) {
  return Launch(Close, 1, 1, stream, a, b, gate);
}

}  // namespace pipec::cuda
