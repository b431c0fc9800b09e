// What the compiler calls at every access to memory of an emulated kernel (-fsanitize=thread, bounds, alignment):
// neither sanitizer's library is linked, these are all there is of them. Host code in the same files calls them
// too; there they do nothing.
#include <cstdio>

#include "tests/cuda_emulation/block.h"

namespace {

using cuda_emulation::Access;
using cuda_emulation::current_thread;
using cuda_emulation::Pause;

inline void Check(const void* address, size_t bytes, Access access) {
  if (!current_thread) return;
  const Pause pause;
  pause.self.block->CheckAccess(pause.self, reinterpret_cast<uintptr_t>(address), bytes, access);
}

// What GCC's -fsanitize=undefined hands over (gcc/ubsan.cc).
struct SourceLocation {
  const char* file;
  unsigned line, column;
};
struct Where {
  SourceLocation place;
  // Types follow.
};
struct TypeMismatch {
  SourceLocation place;
  void* type;
  unsigned char log_alignment, kind;
};

std::string Name(const SourceLocation& place) {
  return std::string(place.file) + ":" + std::to_string(place.line);
}

}  // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}

#define ACCESS_OF(bytes)                                                                      \
  void __tsan_read##bytes(void* address) { Check(address, bytes, Access::kRead); }            \
  void __tsan_write##bytes(void* address) { Check(address, bytes, Access::kWrite); }          \
  void __tsan_volatile_read##bytes(void* address) { Check(address, bytes, Access::kRead); }   \
  void __tsan_volatile_write##bytes(void* address) { Check(address, bytes, Access::kWrite); } \
  void __tsan_unaligned_read##bytes(void* address) { Check(address, bytes, Access::kRead); }  \
  void __tsan_unaligned_write##bytes(void* address) { Check(address, bytes, Access::kWrite); }
ACCESS_OF(1)
ACCESS_OF(2)
ACCESS_OF(4)
ACCESS_OF(8)
ACCESS_OF(16)

void __tsan_read_range(void* address, size_t bytes) { Check(address, bytes, Access::kRead); }
void __tsan_write_range(void* address, size_t bytes) { Check(address, bytes, Access::kWrite); }

void __ubsan_handle_out_of_bounds(Where* where, void* index) {
  if (!current_thread) return;
  const Pause pause;
  pause.self.block->Fail(pause.self, cudaErrorIllegalAddress,
                         "index " + std::to_string(reinterpret_cast<intptr_t>(index)) +
                             " is outside of the array at " + Name(where->place));
}

void __ubsan_handle_type_mismatch_v1(TypeMismatch* where, void* address) {
  if (!current_thread) return;
  char hex[32];
  std::snprintf(hex, sizeof hex, "%p", address);
  const Pause pause;
  pause.self.block->Fail(pause.self, cudaErrorMisalignedAddress,
                         std::string("address ") + hex + " is no multiple of " +
                             std::to_string(1 << where->log_alignment) + " at " + Name(where->place));
}

void __ubsan_handle_divrem_overflow(Where* where, void*, void*) {
  if (!current_thread) return;
  const Pause pause;
  pause.self.block->Fail(pause.self, cudaErrorLaunchFailure, "a division by zero at " + Name(where->place));
}

}  // extern "C"
