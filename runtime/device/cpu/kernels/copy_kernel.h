// Kernels that copy one operand into one result by a StridedCopy known at load.
#pragma once

#include <memory>

#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/strided_copy.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/move.h"

namespace pipec::cpu {

class CopyKernel : public Kernel {
 public:
  explicit CopyKernel(const StridedCopy& copy) : copy_(copy) {}

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    // A view may have been given the place of what it is a view of.
    if (arguments.inputs[0] != arguments.outputs[0]) copy_.Run(arguments.inputs[0], arguments.outputs[0]);
    return absl::OkStatus();
  }

 private:
  StridedCopy copy_;
};

// The copy of a move without its offsets.
inline StridedCopy CopyOf(DType dtype, const StridedMove& move) {
  return StridedCopy(SizeOf(dtype), move.shape, move.from, move.to);
}

// Of an op whose move starts at element 0 of both.
template <absl::StatusOr<StridedMove> (*kMoveOf)(const KernelSpec&)>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareCopy(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const StridedMove move, kMoveOf(spec));
  return std::make_unique<CopyKernel>(CopyOf(spec.inputs[0].type.dtype, move));
}

}  // namespace pipec::cpu
