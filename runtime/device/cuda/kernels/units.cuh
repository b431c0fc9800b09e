// Elements that only move go in the largest units of bytes that sizes and addresses allow.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"

namespace pipec::cuda {

// The largest power of two, at most 16, that divides all.
inline int64_t UnitOf(std::initializer_list<int64_t> values) {
  int64_t bits = 16;
  for (int64_t value : values) bits |= value;
  return bits & -bits;
}
inline int64_t AddressOf(const void* at) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(at)); }

// run(U()) with a type of 1, 2, 4, 8 or 16 bytes.
template <typename Run>
absl::Status ForUnit(int64_t bytes, const Run& run) {
  switch (bytes) {
    case 1:
      return run(uint8_t{});
    case 2:
      return run(uint16_t{});
    case 4:
      return run(uint32_t{});
    case 8:
      return run(uint64_t{});
    default:
      return run(Vector<uint64_t>{});
  }
}

}  // namespace pipec::cuda
