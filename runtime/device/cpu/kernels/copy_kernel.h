// A kernel that copies one operand into one result by a StridedCopy known at load.
#pragma once

#include "runtime/device/cpu/kernels/strided_copy.h"
#include "runtime/device/device.h"

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

}  // namespace pipec::cpu
