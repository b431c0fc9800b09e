// One piece of work on an emulated device, and what happens before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_emulation/failure.h"

namespace cuda_emulation {

class Operation;

// What an operation does when it runs; a fault ends the device's work.
using Work = std::function<std::optional<Failure>(const Operation&)>;

// A range that kernels and libraries may touch, where a test allows only some (control.h).
struct OperandRange {
  const void* begin;
  size_t bytes;
  bool writable;
};

// For every chain (a stream, or a row of a graph) how far it has come.
class Clock {
 public:
  void Join(const Clock& other);
  void Set(int chain, uint32_t position);
  bool Has(int chain, uint32_t position) const {
    return static_cast<size_t>(chain) < positions_.size() && positions_[chain] >= position;
  }

 private:
  std::vector<uint32_t> positions_;
};

class Operation {
 public:
  uint32_t run = 0;  // its number among all operations, from 1
  std::string name;  // "kernel f on stream 2"
  int device = 0;
  int chain = 0;
  uint32_t position = 0;          // on its chain, from 1
  Clock clock;                    // what has happened when it starts, itself included
  Work work;                      // empty: a mark
  std::function<bool()> may_run;  // beside order: another rank's part is there; empty: always
  std::shared_ptr<const std::vector<OperandRange>> operands;  // null: all memory

  bool done = false;
  int waits_for = 0;
  std::vector<std::shared_ptr<Operation>> next;

  // Whether kernels may touch these bytes: false if the test named its operands and this is in none of them.
  bool MayTouch(const void* begin, size_t bytes, bool write) const;
  // Whether the operation with this number has happened before this one starts, whatever order the scheduler takes.
  bool After(uint32_t other) const;
};

// Numbers operations; where each stands.
class OperationTable {
 public:
  static OperationTable& Get();
  uint32_t Add(const Operation& operation);
  struct Entry {
    int chain;
    uint32_t position;
    std::string name;
  };
  const Entry& At(uint32_t run) const { return entries_[run - 1]; }
  // Numbers for shared memory's blocks.
  uint32_t NewBlock() { return ++blocks_; }
  void Clear();

 private:
  std::vector<Entry> entries_;
  uint32_t blocks_ = 0;
};

}  // namespace cuda_emulation
