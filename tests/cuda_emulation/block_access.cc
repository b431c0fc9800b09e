// Which memory a thread may touch, and when.
#include <cstdio>
#include <vector>

#include "tests/cuda_emulation/block.h"
#include "tests/cuda_emulation/machine.h"
#include "tests/cuda_emulation/operation.h"
#include "tests/cuda_emulation/symbols.h"

namespace cuda_emulation {
namespace {

// No thread of a test's kernel does so much work; one that waits for what never comes does.
constexpr uint32_t kMostAccesses = 1 << 24;

std::string Describe(Access access, size_t bytes, uintptr_t address) {
  char hex[32];
  std::snprintf(hex, sizeof hex, "0x%zx", static_cast<size_t>(address));
  return std::string(access == Access::kRead    ? "reads "
                     : access == Access::kWrite ? "writes "
                                                : "updates ") +
         std::to_string(bytes) + " bytes at " + hex;
}

// The cells of the calling host thread's shared arrays.
Cell* SharedCells(const Extent& shared) {
  static thread_local std::vector<Cell> cells(shared.bytes);
  return cells.data();
}

// Whether a thread comes after an earlier moment of its own block.
bool AfterInBlock(const KernelThread& self, const Moment& earlier, uint32_t number, uint32_t barrier_time) {
  if (number == self.number || earlier.time < barrier_time) return true;
  return number / kWarpSize == self.number / kWarpSize && self.known[number % kWarpSize] >= earlier.time;
}

}  // namespace

class Block::InLaunch : public Accessor {
 public:
  InLaunch(const Block& block, const KernelThread& self)
      : Accessor({block.operation_.run, block.number_ * block.size() + self.number, self.time}),
        block_(block),
        self_(self) {}
  bool After(const Moment& earlier) const override {
    if (earlier.run != now.run) return block_.operation_.After(earlier.run);
    return BlockOf(earlier.thread) == block_.number_ &&
           AfterInBlock(self_, earlier, earlier.thread % block_.size(), block_.barrier_time_);
  }
  uint32_t BlockOf(uint32_t thread) const override { return thread / block_.size(); }

 private:
  const Block& block_;
  const KernelThread& self_;
};

class Block::InBlock : public Accessor {
 public:
  InBlock(const Block& block, const KernelThread& self)
      : Accessor({block.run_, self.number, self.time}), block_(block), self_(self) {}
  bool After(const Moment& earlier) const override {
    return earlier.run != now.run || AfterInBlock(self_, earlier, earlier.thread, block_.barrier_time_);
  }
  uint32_t BlockOf(uint32_t) const override { return 0; }

 private:
  const Block& block_;
  const KernelThread& self_;
};

void Block::CheckAccess(KernelThread& self, uintptr_t address, size_t bytes, Access access) {
  if (++self.accesses == kMostAccesses) {
    Fail(self, cudaErrorLaunchTimeout,
         "has accessed memory " + std::to_string(kMostAccesses) + " times and does not end");
  }
  if (self.fiber.Contains(address, bytes)) return;
  static thread_local const Extent shared = SharedMemory();
  if (shared.Contains(address, 1)) return CheckShared(self, address, bytes, access);
  if (memory_ && memory_->Contains(address, bytes)) return CheckGlobal(self, address, bytes, access);
  memory_ = Machine::Get().memory.Find(address);
  if (memory_) return CheckGlobal(self, address, bytes, access);
  const Extent constant = StaticDataAt(address);
  if ((access == Access::kRead && constant.Contains(address, bytes)) || IsGuard(address)) return;
  Fail(self, cudaErrorIllegalAddress,
       Describe(access, bytes, address) + ", " + Machine::Get().memory.DescribeNear(address));
}

void Block::CheckGlobal(KernelThread& self, uintptr_t address, size_t bytes, Access access) {
  if (!memory_->Contains(address, bytes)) {
    Fail(self, cudaErrorIllegalAddress,
         Describe(access, bytes, address) + ", across the end of " + memory_->Describe());
  }
  if (!Machine::Get().MayReach(operation_.device, memory_->device())) {
    Fail(self, cudaErrorIllegalAddress,
         Describe(access, bytes, address) + ", memory of device " + std::to_string(memory_->device()) +
             ", to which device " + std::to_string(operation_.device) + " has no peer access");
  }
  if (!operation_.MayTouch(reinterpret_cast<const void*>(address), bytes, access != Access::kRead)) {
    Fail(self, cudaErrorIllegalAddress, Describe(access, bytes, address) + ", outside the kernel's operands");
  }
  const InLaunch accessor(*this, self);
  const Conflict conflict = Touch(&memory_->CellAt(address), bytes, access, accessor);
  if (conflict.earlier.run == 0) return;
  std::string other = OperationTable::Get().At(conflict.earlier.run).name;
  if (conflict.earlier.run == operation_.run) {
    const uint32_t block = conflict.earlier.thread / size();
    other = block == number_
                ? "thread " + ThreadName(Thread(conflict.earlier.thread % size())) + " of its block"
                : "block " + std::to_string(block);
  }
  const size_t byte = address + conflict.at - reinterpret_cast<uintptr_t>(memory_->begin());
  Fail(self, cudaErrorLaunchFailure,
       "race: " + Describe(access, bytes, address) + " of " + memory_->Describe() + ", byte " +
           std::to_string(byte) + " of which " + other + (conflict.wrote ? " writes" : " reads") +
           " with nothing to order the two");
}

void Block::CheckShared(KernelThread& self, uintptr_t address, size_t bytes, Access access) {
  const Extent array = SharedArrayAt(address);
  if (!array.Contains(address, bytes)) {
    if (IsGuard(address)) return;
    const std::string name = SharedArrayName(array.begin);
    Fail(self, cudaErrorIllegalAddress,
         Describe(access, bytes, address) +
             (name.empty() ? ", before the shared arrays"
                           : ", byte " + std::to_string(address - array.begin) + " of shared array " + name +
                                 " of " + std::to_string(array.bytes) + " bytes"));
  }
  static thread_local const Extent shared = SharedMemory();
  Cell* cells = SharedCells(shared) + (address - shared.begin);
  const InBlock accessor(*this, self);
  const auto in_array = [&](size_t at) {
    return ", byte " + std::to_string(address + at - array.begin) + " of shared array " +
           SharedArrayName(array.begin);
  };
  for (size_t i = 0; i < bytes; ++i) {
    if (cells[i].write.run == run_) continue;
    if (access != Access::kWrite) {
      Fail(self, cudaErrorLaunchFailure,
           Describe(access, bytes, address) + in_array(i) + ", which no thread of its block has written");
    }
    cells[i] = Cell{};
  }
  const Conflict conflict = Touch(cells, bytes, access, accessor);
  if (conflict.earlier.run == 0) return;
  Fail(self, cudaErrorLaunchFailure,
       "race: " + Describe(access, bytes, address) + in_array(conflict.at) + ", which thread " +
           ThreadName(Thread(conflict.earlier.thread)) + (conflict.wrote ? " writes" : " reads") +
           " with nothing to order the two");
}

}  // namespace cuda_emulation
