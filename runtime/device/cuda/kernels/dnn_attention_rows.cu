#include <cmath>

#include "runtime/device/cuda/kernels/dnn_attention_rows.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

// `units` of 16 bytes a row.
__global__ void __launch_bounds__(kThreads)
    ZeroRows(const float* logs, uint4* o, int64_t rows, int64_t units) {
  for (int64_t i = FirstItem(); i < rows * units; i += ItemStride()) {
    if (!isfinite(logs[i / units])) o[i] = uint4{0, 0, 0, 0};
  }
}

__global__ void __launch_bounds__(kThreads) HideRows(const float* logs, float* seen, int64_t rows) {
  for (int64_t i = FirstItem(); i < rows; i += ItemStride()) seen[i] = isfinite(logs[i]) ? logs[i] : 1e30f;
}

}  // namespace

absl::Status ZeroHiddenRows(cudaStream_t stream, const float* logs, void* o, int64_t rows,
                            int64_t row_bytes) {
  const int64_t units = row_bytes / static_cast<int64_t>(sizeof(uint4));
  return pipec::Launch(ZeroRows, BlocksFor(rows * units), kThreads, stream, logs, static_cast<uint4*>(o),
                       rows, units);
}

absl::Status LogsOfSeenRows(cudaStream_t stream, const float* logs, float* seen, int64_t rows) {
  return pipec::Launch(HideRows, BlocksFor(rows), kThreads, stream, logs, seen, rows);
}

}  // namespace pipec::cuda
