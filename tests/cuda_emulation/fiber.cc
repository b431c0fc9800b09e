#include "tests/cuda_emulation/fiber.h"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <new>

namespace cuda_emulation {
namespace {
namespace context = boost::context::detail;

constexpr size_t kPage = 4096;
constexpr size_t kCacheLine = 64;
constexpr size_t kStackBytes = 32 * kPage;  // the lowest page is a guard

}  // namespace

struct Fiber::Switch {
  static void Main(context::transfer_t from) {
    Fiber& fiber = *static_cast<Fiber*>(from.data);
    fiber.caller_ = from.fctx;
    fiber.entry_(fiber.argument_);
    fiber.Suspend();
  }
};

Fiber::Fiber() {
  static thread_local unsigned fibers = 0;
  // The tops of the stacks must not all meet in the same few lines of the processor's cache.
  unused_ = fibers++ % (kPage / kCacheLine) * kCacheLine;
  void* memory =
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<std::byte*>(memory);
  mprotect(stack_, kPage, PROT_NONE);
}

Fiber::~Fiber() { munmap(stack_, kStackBytes); }

void Fiber::Start(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  context_ =
      context::make_fcontext(stack_ + kStackBytes - unused_, kStackBytes - kPage - unused_, &Switch::Main);
}

void Fiber::Resume() { context_ = context::jump_fcontext(context_, this).fctx; }

void Fiber::Suspend() { caller_ = context::jump_fcontext(caller_, nullptr).fctx; }

bool Fiber::Contains(uintptr_t address, size_t bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(stack_);
  return address >= begin + kPage && address + bytes <= begin + kStackBytes;
}

}  // namespace cuda_emulation
