// The atomic operations of host code in the files of kernels (reference counts): -fsanitize=thread turns them into
// calls of these. Kernels use CUDA's own (atomics.h).
#include <atomic>
#include <cstdint>

extern "C" {

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

#define ATOMICS_OF(bits, type)                                                                     \
  type __tsan_atomic##bits##_load(const volatile type* a, int) {                                   \
    return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile type* a, type v, int) {                                \
    __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                \
  type __tsan_atomic##bits##_exchange(volatile type* a, type v, int) {                             \
    return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_add(volatile type* a, type v, int) {                            \
    return __atomic_fetch_add(a, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_sub(volatile type* a, type v, int) {                            \
    return __atomic_fetch_sub(a, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_and(volatile type* a, type v, int) {                            \
    return __atomic_fetch_and(a, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_or(volatile type* a, type v, int) {                             \
    return __atomic_fetch_or(a, v, __ATOMIC_SEQ_CST);                                              \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_xor(volatile type* a, type v, int) {                            \
    return __atomic_fetch_xor(a, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* a, type* c, type v, int, int) { \
    return __atomic_compare_exchange_n(a, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* a, type* c, type v, int, int) {   \
    return __atomic_compare_exchange_n(a, c, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
  }                                                                                                \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* a, type c, type v, int, int) {    \
    __atomic_compare_exchange_n(a, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
    return c;                                                                                      \
  }
ATOMICS_OF(8, uint8_t)
ATOMICS_OF(16, uint16_t)
ATOMICS_OF(32, uint32_t)
ATOMICS_OF(64, uint64_t)

}  // extern "C"
