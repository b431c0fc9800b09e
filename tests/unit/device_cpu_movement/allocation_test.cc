// Counts this program's calls of operator new, so that kernel_case.h can tell that a launch makes none.
#include <cstdlib>
#include <new>

#include "tests/unit/device_cpu_movement/kernel_case.h"

namespace {
thread_local int64_t allocations = 0;
}  // namespace

// Not inlined: the compiler would take malloc and delete for a mismatch.
__attribute__((noinline)) void* operator new(size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace pipec {

int64_t Allocations() { return allocations; }

TEST(Allocations, AreCounted) {
  const int64_t before = Allocations();
  auto* volatile memory = new int(1);
  delete memory;
  EXPECT_EQ(Allocations(), before + 1);
}

}  // namespace pipec
