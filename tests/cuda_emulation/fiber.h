// A stack to run a function on, which can stop in its middle and go on later: one thread of an emulated block. A fiber
// that is abandoned in its middle is simply started again; nothing is unwound.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_emulation {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next Resume begins `entry(argument)`, which must not throw.
  void Start(void (*entry)(void*), void* argument);
  // Runs the fiber until it suspends itself or its function returns.
  void Resume();
  // Back to who resumed this fiber; only from inside it.
  void Suspend();

  bool Contains(uintptr_t address, size_t bytes) const;

 private:
  struct Switch;

  std::byte* stack_;
  size_t unused_;  // bytes at the top of the stack
  void* context_ = nullptr;
  void* caller_ = nullptr;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace cuda_emulation
