// TopK of many: rows are sorted by all of the device.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/fault.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/axis.h"

namespace pipec::cuda {

struct TopKOrder {
  AxisView view;
  int64_t k = 0;
  bool largest = true;
};

// Whether a sort is the faster way, and one there is: keys of at most 32 bits, or a single row.
bool IsSorted(const TopKOrder& order, DType dtype);
// (x, K) -> (values, places), as along_axis.cu has them; the fault is for a K that is not `order.k`.
absl::StatusOr<std::unique_ptr<Kernel>> MakeSortedTopK(const KernelSpec& spec, const TopKOrder& order,
                                                       const FaultSite& fault);

}  // namespace pipec::cuda
