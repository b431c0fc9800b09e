#include "tests/cuda_emulation/memory_map.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace cuda_emulation {
namespace {

constexpr size_t kAlignment = 256;  // what cudaMalloc promises

// Cells are touched only where the memory is, so they take what the system gives when they are.
Cell* NewCells(size_t count) {
  void* memory = mmap(nullptr, count * sizeof(Cell), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<Cell*>(memory);
}

}  // namespace

Allocation::Allocation(size_t bytes, int device) : bytes_(bytes), device_(device) {
  const size_t whole = (bytes / kAlignment + 3) * kAlignment;
  block_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole));
  if (!block_) throw std::bad_alloc();
  begin_ = block_ + kAlignment;
  std::memset(block_, 0xff, whole);
  cells_ = NewCells(bytes);
}

Allocation::~Allocation() {
  std::free(block_);
  munmap(cells_, bytes_ * sizeof(Cell));
}

std::string Allocation::Describe() const {
  return (device_ < 0 ? "pinned memory of " : "device memory of ") + std::to_string(bytes_) + " bytes";
}

Allocation* MemoryMap::Find(uintptr_t address) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return nullptr;
  Allocation* allocation = std::prev(after)->second.get();
  return allocation->Contains(address, 1) ? allocation : nullptr;
}

Allocation& MemoryMap::Add(size_t bytes, int device) {
  auto allocation = std::make_unique<Allocation>(bytes, device);
  Allocation& added = *allocation;
  allocations_.emplace(reinterpret_cast<uintptr_t>(added.begin()), std::move(allocation));
  return added;
}

void MemoryMap::Remove(const void* begin, bool work_is_enqueued) {
  const auto found = allocations_.find(reinterpret_cast<uintptr_t>(begin));
  freed_.push_back(std::move(found->second));
  allocations_.erase(found);
  if (!work_is_enqueued) freed_.clear();
}

std::string MemoryMap::DescribeNear(uintptr_t address) const {
  auto after = allocations_.upper_bound(address);
  if (after != allocations_.begin()) {
    const Allocation& below = *std::prev(after)->second;
    const uintptr_t past = address - reinterpret_cast<uintptr_t>(below.begin()) - below.bytes();
    if (past < kAlignment) return std::to_string(past) + " bytes past the end of " + below.Describe();
  }
  if (after != allocations_.end() && after->first - address <= kAlignment) {
    return std::to_string(after->first - address) + " bytes before " + after->second->Describe();
  }
  for (const auto& allocation : freed_) {
    if (allocation->Contains(address, 1)) return allocation->Describe() + " that has been freed";
  }
  return "no memory of the device (host memory, freed memory or another thread's stack)";
}

size_t MemoryMap::bytes_of(int device) const {
  size_t sum = 0;
  for (const auto& [begin, allocation] : allocations_)
    sum += allocation->device() == device ? allocation->bytes() : 0;
  return sum;
}

void MemoryMap::ClearCells() {
  freed_.clear();
  for (const auto& [begin, allocation] : allocations_) {
    madvise(&allocation->CellAt(begin), allocation->bytes() * sizeof(Cell), MADV_DONTNEED);
  }
}

}  // namespace cuda_emulation
