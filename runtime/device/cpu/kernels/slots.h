// Loops whose steps need memory of their own: the steps are dealt out to a few slots, each with a part of the
// workspace, whatever the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {

class Slots {
 public:
  // `bytes`: what one step needs.
  Slots(int64_t steps, int64_t bytes)
      : steps_(steps), count_(std::clamp<int64_t>(steps, 1, 16)), stride_((bytes + 63) / 64 * 64) {}

  int64_t workspace_bytes() const { return count_ * stride_; }

  // run(step, memory) for every step.
  template <typename F>
  void Run(void* workspace, const F& run) const {
    ParallelFor(count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        std::byte* const memory = static_cast<std::byte*>(workspace) + slot * stride_;
        for (int64_t step = slot; step < steps_; step += count_) run(step, static_cast<void*>(memory));
      }
    });
  }

 private:
  int64_t steps_, count_, stride_;
};

}  // namespace pipec::cpu
