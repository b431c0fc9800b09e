// One loop over the rank's thread group: libgomp's, the one oneDNN uses too.
#pragma once

#include <cstdint>

namespace pipec::cpu {

namespace internal {
using RangeFunction = void (*)(const void* closure, int64_t begin, int64_t end);
// n > grain.
void RunInParallel(int64_t n, int64_t grain, RangeFunction function, const void* closure);
}  // namespace internal

// Calls fn(begin, end) on ranges that cover [0, n) once, in parallel; returns when all are done. Every begin
// is a multiple of `grain` (>= 1), the least work worth a thread. How many ranges there are depends on the
// number of threads: where that would change a result (a sum), go through the range in blocks of `grain`
// elements, which are then always the same. Allocates nothing. fn must not throw.
template <typename F>
void ParallelFor(int64_t n, int64_t grain, const F& fn) {
  if (n <= 0) return;
  if (n <= grain) {
    fn(int64_t{0}, n);
    return;
  }
  internal::RunInParallel(
      n, grain,
      [](const void* closure, int64_t begin, int64_t end) { (*static_cast<const F*>(closure))(begin, end); },
      &fn);
}

}  // namespace pipec::cpu
