#include "runtime/device/cuda/kernels/epilogue_kernel.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_stream.h"

namespace pipec::cuda {
namespace {

class EpilogueKernel : public Kernel {
 public:
  EpilogueKernel(std::shared_ptr<BlasProduct> product, const EpilogueOperands& operands,
                 std::unique_ptr<Kernel> in_parts)
      : product_(std::move(product)), operands_(operands), in_parts_(std::move(in_parts)) {}

  int64_t workspace_bytes() const override {
    return std::max(product_->workspace_bytes(), in_parts_ == nullptr ? 0 : in_parts_->workspace_bytes());
  }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const void *const a = arguments.inputs[operands_.a], *const b = arguments.inputs[operands_.b];
    const void* const operand = operands_.input >= 0    ? arguments.inputs[operands_.input]
                                : operands_.output >= 0 ? arguments.outputs[operands_.output]
                                                        : nullptr;
    if (in_parts_ != nullptr && !product_->Aligned(a, b, arguments.outputs[0], operand))
      return in_parts_->Launch(stream, arguments);
    return product_->Run(static_cast<CudaStream&>(stream).get(), a, b, arguments.outputs[0], arguments.workspace,
                         operand);
  }

 private:
  const std::shared_ptr<BlasProduct> product_;
  const EpilogueOperands operands_;
  const std::unique_ptr<Kernel> in_parts_;  // null: the product takes operands at any address
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeEpilogueKernel(
    std::shared_ptr<BlasProduct> product, const EpilogueOperands& operands,
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Kernel>>()> in_parts) {
  std::unique_ptr<Kernel> other;
  if (product->aligned_only()) {
    ASSIGN_OR_RETURN(other, in_parts());
  }
  return std::make_unique<EpilogueKernel>(std::move(product), operands, std::move(other));
}

}  // namespace pipec::cuda
