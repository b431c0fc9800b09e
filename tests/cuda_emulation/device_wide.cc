// Doubles of CUB's device-wide algorithms, behind the signatures of runtime/device/cuda/kernels/device_wide.h. They
// refuse what CUB's documents forbid: less scratch than was asked for, operands that overlap.
#include "runtime/device/cuda/kernels/device_wide.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/cuda_emulation/call.h"
#include "tests/cuda_emulation/capture.h"
#include "tests/cuda_emulation/elements.h"
#include "tests/cuda_emulation/transfer.h"

namespace cuda_emulation {
namespace {

struct Range {
  const void* begin;
  size_t bytes;
  Access access;
};

bool Overlap(const Range& a, const Range& b) {
  const auto *from_a = static_cast<const std::byte*>(a.begin),
             *from_b = static_cast<const std::byte*>(b.begin);
  return from_a < from_b + b.bytes && from_b < from_a + a.bytes;
}

// `ranges`: the operands, then the scratch, of which `wanted` bytes are needed.
cudaError_t Enqueue(const char* name, size_t wanted, std::vector<Range> ranges, cudaStream_t handle,
                    std::function<void()> body) {
  return Call(name, [&](Machine& machine, auto&) {
    const auto refuse = [&](const char* why) {
      return machine.Refuse(cudaErrorInvalidValue, std::string(name) + ": " + why);
    };
    CUstream_st* const stream = machine.StreamOf(handle);
    if (!stream)
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            std::string(name) + " on a stream that lives no more");
    if (ranges.back().begin == nullptr || ranges.back().bytes < wanted)
      return refuse("the scratch is too small");
    if (reinterpret_cast<uintptr_t>(ranges.back().begin) % 256 != 0)
      return refuse("the scratch is not aligned to 256 bytes");
    for (size_t i = 0; i < ranges.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (Overlap(ranges[i], ranges[k])) return refuse("operands overlap");
      }
    }
    return Submit(machine, *stream, name, cudaGraphNodeTypeKernel,
                  [ranges, body](const Operation& operation) -> std::optional<Failure> {
                    for (const Range& range : ranges) {
                      if (auto failure = CheckRange(operation, range.begin, range.bytes, range.access))
                        return failure;
                    }
                    body();
                    return std::nullopt;
                  });
  });
}

cudaDataType_t TypeOf(pipec::DType dtype) {
  switch (dtype) {
    case pipec::DType::kFloat64:
      return CUDA_R_64F;
    case pipec::DType::kFloat16:
      return CUDA_R_16F;
    case pipec::DType::kBFloat16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

}  // namespace
}  // namespace cuda_emulation

namespace pipec::cuda {

using cuda_emulation::Access;

cudaError_t DeviceSumBytes(Terms, DType, int64_t n, size_t* bytes) {
  return cuda_emulation::Call("cub::DeviceReduce", [&](auto&, auto&) {
    *bytes = 1 + static_cast<size_t>(n) / 100;
    return cudaSuccess;
  });
}

cudaError_t DeviceSum(Terms what, DType dtype, const void* x, int64_t n, double* total, void* scratch,
                      size_t bytes, cudaStream_t stream) {
  const cudaDataType_t type = cuda_emulation::TypeOf(dtype);
  return cuda_emulation::Enqueue("cub::DeviceReduce", 1 + static_cast<size_t>(n) / 100,
                                 {{x, n * cuda_emulation::ElementBytes(type), Access::kRead},
                                  {total, sizeof(double), Access::kWrite},
                                  {scratch, bytes, Access::kWrite}},
                                 stream, [=] {
                                   double sum = 0;
                                   for (int64_t i = 0; i < n; ++i) {
                                     const double value = cuda_emulation::GetElement(type, x, i);
                                     sum += what == Terms::kSquares ? value * value : value;
                                   }
                                   *total = sum;
                                 });
}

cudaError_t DeviceSortBytes(int64_t n, int, size_t* bytes) {
  return cuda_emulation::Call("cub::DeviceRadixSort", [&](auto&, auto&) {
    *bytes = 1 + static_cast<size_t>(n);
    return cudaSuccess;
  });
}

cudaError_t DeviceSort(const uint64_t* keys, uint64_t* sorted_keys, const int32_t* values,
                       int32_t* sorted_values, int64_t n, int bits, void* scratch, size_t bytes,
                       cudaStream_t stream) {
  const size_t key_bytes = n * sizeof(uint64_t), value_bytes = n * sizeof(int32_t);
  return cuda_emulation::Enqueue(
      "cub::DeviceRadixSort", 1 + static_cast<size_t>(n),
      {{keys, key_bytes, Access::kRead},
       {sorted_keys, key_bytes, Access::kWrite},
       {values, value_bytes, Access::kRead},
       {sorted_values, value_bytes, Access::kWrite},
       {scratch, bytes, Access::kWrite}},
      stream, [=] {
        const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
        std::vector<int64_t> order(n);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return (keys[a] & mask) < (keys[b] & mask); });
        for (int64_t i = 0; i < n; ++i) sorted_keys[i] = keys[order[i]], sorted_values[i] = values[order[i]];
      });
}

}  // namespace pipec::cuda
