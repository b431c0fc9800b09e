// The program's own symbols, read from its ELF file: the bounds and names of shared arrays and of constants, the
// names of kernels. A shared array is a thread_local of its function with a pad beside it (cuda_emulation.h): its
// bounds are those of its symbol, and each host thread has its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cuda_emulation {

struct Extent {
  uintptr_t begin = 0;
  size_t bytes = 0;
  bool Contains(uintptr_t address, size_t size) const {
    return address >= begin && address + size <= begin + bytes;
  }
};

// From the first to the last shared array of the calling host thread, with their pads.
Extent SharedMemory();
// The shared array that holds the address, or the nearest below it within the pads, or an empty one.
Extent SharedArrayAt(uintptr_t address);
// Whether a guard lies there: whether a thread_local of a function has been initialised.
bool IsGuard(uintptr_t address);
// The array's name with its function's, "" if no array begins there.
std::string SharedArrayName(uintptr_t begin);
// The static datum (constant, table) that holds the address, or an empty extent.
Extent StaticDataAt(uintptr_t address);
// "?" if the program has no symbols.
std::string FunctionName(const void* function);
// Names of shared arrays without a pad on each side, where a step outside could land in another array; "" if all
// have them.
std::string ArraysWithoutPads();

}  // namespace cuda_emulation
