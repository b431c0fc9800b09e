#include "runtime/device/cpu/parallel_for.h"

#include <omp.h>

#include <algorithm>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define PIPEC_HAPPENS_BEFORE(address) __tsan_release(address)
#define PIPEC_HAPPENS_AFTER(address) __tsan_acquire(address)
#else
#define PIPEC_HAPPENS_BEFORE(address) (void)(address)
#define PIPEC_HAPPENS_AFTER(address) (void)(address)
#endif

// What `#pragma omp parallel` compiles to. Called by hand because ThreadSanitizer does not see libgomp's
// synchronisation: here no memory is shared with the threads before the annotations say so.
extern "C" void GOMP_parallel(void (*function)(void*), void* data, unsigned threads, unsigned flags);

namespace pipec::cpu::internal {
namespace {

struct Work {
  int64_t n, grain, blocks;
  RangeFunction function;
  const void* closure;
  char done = 0;  // only its address counts, for the annotations
};

void RunShare(void* data) {
  PIPEC_HAPPENS_AFTER(data);
  const Work& work = *static_cast<const Work*>(data);
  const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
  const int64_t begin = work.blocks * thread / threads * work.grain;
  const int64_t end = std::min(work.blocks * (thread + 1) / threads * work.grain, work.n);
  if (begin < end) work.function(work.closure, begin, end);
  PIPEC_HAPPENS_BEFORE(&static_cast<Work*>(data)->done);
}

}  // namespace

void RunInParallel(int64_t n, int64_t grain, RangeFunction function, const void* closure) {
  Work work{n, grain, (n + grain - 1) / grain, function, closure};
  const auto threads = static_cast<unsigned>(std::min<int64_t>(omp_get_max_threads(), work.blocks));
  if (threads <= 1) {
    function(closure, 0, n);
    return;
  }
  PIPEC_HAPPENS_BEFORE(&work);
  GOMP_parallel(RunShare, &work, threads, 0);
  PIPEC_HAPPENS_AFTER(&work.done);
}

}  // namespace pipec::cpu::internal
