// Which memory the kernels of this host thread may touch, where a test says so: a plan has one allocation for all
// buffers, so a step outside of a buffer stays inside the allocation.
#pragma once

#include <memory>
#include <vector>

#include "tests/cuda_emulation/operation.h"

namespace cuda_emulation {

// While it lives, kernels that this host thread launches may touch these ranges of device and pinned memory only.
class OperandRanges {
 public:
  explicit OperandRanges(std::vector<OperandRange> ranges);
  ~OperandRanges();
  OperandRanges(const OperandRanges&) = delete;
  OperandRanges& operator=(const OperandRanges&) = delete;
};

// Null: all memory.
std::shared_ptr<const std::vector<OperandRange>> DeclaredOperands();

}  // namespace cuda_emulation
