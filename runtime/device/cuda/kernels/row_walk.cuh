// A thread's way through rows of items without a division at every step.
#pragma once

#include <cstdint>

namespace pipec::cuda {

// Items first, first + step, ... of rows of `length` items each. A grid has fewer than 2^32 threads, and 64-bit
// divisions are calls.
class RowWalk {
 public:
  __device__ RowWalk(unsigned first, unsigned step, int64_t length) : length_(length) {
    const unsigned divisor = length > 0xffffffffll ? 0xffffffffu : static_cast<unsigned>(length);
    const unsigned row = first / divisor, row_step = step / divisor;
    row_ = row;
    item_ = first - row * divisor;
    row_step_ = row_step;
    item_step_ = step - row_step * divisor;
  }
  __device__ int64_t row() const { return row_; }
  __device__ int64_t item() const { return item_; }
  __device__ void Next() {
    row_ += row_step_;
    item_ += item_step_;
    if (item_ < length_) return;
    item_ -= length_;
    ++row_;
  }

 private:
  const int64_t length_;
  int64_t row_, item_, row_step_, item_step_;
};

__device__ __forceinline__ unsigned FirstThread() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ unsigned AllThreads() { return gridDim.x * blockDim.x; }

}  // namespace pipec::cuda
