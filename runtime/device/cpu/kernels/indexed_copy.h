// A copy whose coordinates are looked up axis by axis: result[i, k, ...] =
// operand[place(0, i), place(1, k), ...].
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/base/tensor_type.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {

class IndexedCopy {
 public:
  // Of ranks that agree, 1 or more. Every place is to be set before a run;
  // setting one allocates nothing.
  IndexedCopy(const Shape &operand, const Shape &result) : shape_(result), strides_(Strides(operand)) {
    int64_t places = 0;
    for (int64_t dim : result) {
      first_.push_back(places);
      places += dim;
    }
    offsets_.resize(places);
  }

  void Set(int axis, int64_t at, int64_t place) { offsets_[first_[axis] + at] = place * strides_[axis]; }

  void Run(int64_t element_bytes, const void *operand, void *result) const {
    ForSize<bool>(element_bytes, [&](auto t) {
      using T = typename decltype(t)::type;
      RunTyped(static_cast<const T *>(operand), static_cast<T *>(result));
      return true;
    });
  }

 private:
  template <typename T>
  void RunTyped(const T *x, T *y) const {
    const int outer_rank = static_cast<int>(shape_.size()) - 1;
    const int64_t width = shape_[outer_rank];
    if (width == 0) return;
    const int64_t *const columns = offsets_.data() + first_[outer_rank];
    ParallelFor(NumElements(shape_) / width, std::max<int64_t>(1, kElementGrain / width),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    int64_t at = 0, rest = row;
                    for (int axis = outer_rank - 1; axis >= 0; rest /= shape_[axis--]) {
                      at += offsets_[first_[axis] + rest % shape_[axis]];
                    }
                    for (int64_t i = 0; i < width; ++i) y[row * width + i] = x[at + columns[i]];
                  }
                });
  }

  Shape shape_, strides_, first_;
  std::vector<int64_t> offsets_;  // in the operand, by axis, then by place of the result
};

}  // namespace pipec::cpu
