// Slice, and SliceGrad which writes a gradient back to where Slice read.
#include <cstring>

#include "runtime/device/cpu/kernels/copy_kernel.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

class SliceKernel : public Kernel {
 public:
  SliceKernel(const SliceOperands& operands, DType dtype) : operands_(operands), dtype_(dtype) {}

  // Finds the slice from the contents of inputs 1 to 4, once and for all if they are known at load.
  absl::Status Place(const void* const* inputs) {
    ASSIGN_OR_RETURN(const StridedMove move, operands_.Place(inputs));
    copy_ = CopyOf(dtype_, move);
    offset_ = move.from_offset * SizeOf(dtype_);
    return absl::OkStatus();
  }

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    if (!operands_.known()) RETURN_IF_ERROR(Place(arguments.inputs));
    copy_.Run(static_cast<const std::byte*>(arguments.inputs[0]) + offset_, arguments.outputs[0]);
    return absl::OkStatus();
  }

 private:
  const SliceOperands operands_;
  const DType dtype_;
  StridedCopy copy_;
  int64_t offset_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSlice(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const SliceOperands operands, SliceOperands::Of(spec));
  auto kernel = std::make_unique<SliceKernel>(operands, spec.inputs[0].type.dtype);
  if (operands.known()) RETURN_IF_ERROR(kernel->Place(operands.constants()));
  return kernel;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSliceGrad(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const StridedMove move, SliceGradMove(spec));
  const DType dtype = spec.inputs[0].type.dtype;
  const int64_t offset = move.to_offset * SizeOf(dtype), bytes = spec.outputs[0].type.bytes();
  return MakeKernel(0, [=, copy = CopyOf(dtype, move)](const KernelArguments& arguments) {
    auto* dx = static_cast<std::byte*>(arguments.outputs[0]);
    std::memset(dx, 0, bytes);
    copy.Run(arguments.inputs[0], dx + offset);
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterSliceKernels(KernelRegistry& registry) {
  registry.Add("Slice", "", PrepareSlice);
  registry.Add("SliceGrad", kPipecDomain, PrepareSliceGrad);
}

}  // namespace pipec::cpu
