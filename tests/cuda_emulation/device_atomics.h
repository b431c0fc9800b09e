// CUDA's atomic functions. A thread may be interrupted before one, never in one. Like CUDA's, they
// convert the value to the type of what the address holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cuda_emulation {

// Checks the access, and ends the kernel if it is wrong; other threads may run meanwhile.
void CheckAtomic(const void* address, size_t bytes) noexcept;

template <typename T, typename F>
__attribute__((no_sanitize("thread", "undefined"))) T Update(T* address, F change) {
  CheckAtomic(address, sizeof(T));
  const T old = *address;
  *address = change(old);
  return old;
}

}  // namespace cuda_emulation

template <typename T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return cuda_emulation::Update(address, [value](T old) { return static_cast<T>(old + value); });
}
template <typename T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  return cuda_emulation::Update(address, [value](T old) { return static_cast<T>(old - value); });
}
template <typename T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return cuda_emulation::Update(address, [value](T old) { return old < value ? value : old; });
}
template <typename T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return cuda_emulation::Update(address, [value](T old) { return value < old ? value : old; });
}
template <typename T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return cuda_emulation::Update(address, [value](T) { return value; });
}
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return cuda_emulation::Update(address, [=](T old) { return old == expected ? value : old; });
}
template <typename T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return cuda_emulation::Update(address, [value](T old) { return static_cast<T>(old | value); });
}
template <typename T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return cuda_emulation::Update(address, [value](T old) { return static_cast<T>(old & value); });
}
