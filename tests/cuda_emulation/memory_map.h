// The live memory that emulated work may touch, by address, with the cells of its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda_emulation/shadow.h"

namespace cuda_emulation {

// Memory of cudaMalloc or of pinned host memory.
class Allocation {
 public:
  // `device` < 0: pinned host memory. Filled with bytes 0xff: not a number, minus one. Throws std::bad_alloc.
  Allocation(size_t bytes, int device);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  std::byte* begin() const { return begin_; }
  size_t bytes() const { return bytes_; }
  int device() const { return device_; }
  bool Contains(uintptr_t address, size_t bytes) const {
    const auto begin = reinterpret_cast<uintptr_t>(begin_);
    return address >= begin && bytes <= bytes_ && address - begin <= bytes_ - bytes;
  }
  Cell& CellAt(uintptr_t address) const { return cells_[address - reinterpret_cast<uintptr_t>(begin_)]; }
  // "device memory of 64 bytes", for reports.
  std::string Describe() const;

 private:
  size_t bytes_;
  int device_;
  std::byte* block_;  // what the system gave, with space around it
  std::byte* begin_;
  Cell* cells_;
};

class MemoryMap {
 public:
  // Null where nothing live lies.
  Allocation* Find(uintptr_t address) const;
  Allocation& Add(size_t bytes, int device);
  // Of an allocation that begins there. While work is enqueued the memory itself is kept, so that nothing else
  // comes to lie where that work may still go.
  void Remove(const void* begin, bool work_is_enqueued);
  // What an address outside is near to, for reports: "4 bytes past the end of device memory of 64 bytes".
  std::string DescribeNear(uintptr_t address) const;

  size_t live() const { return allocations_.size(); }
  size_t bytes_of(int device) const;
  // Forgets who touched what; nothing is enqueued.
  void ClearCells();

 private:
  std::map<uintptr_t, std::unique_ptr<Allocation>> allocations_;
  std::vector<std::unique_ptr<Allocation>> freed_;
};

}  // namespace cuda_emulation
