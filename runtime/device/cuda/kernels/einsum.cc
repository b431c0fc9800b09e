// Einsum (operands...) -> (Y), by copies and products as operands/einsum.h plans them.
#include "runtime/device/operands/einsum.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/matmul.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/kernels/strided_copy.h"

namespace pipec::cuda {
namespace {

class EinsumKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, CudaContext& context) {
    auto kernel = std::unique_ptr<EinsumKernel>(new EinsumKernel);
    ASSIGN_OR_RETURN(kernel->plan_, EinsumPlanOf(spec));
    const DType dtype = spec.inputs[0].type.dtype;
    const float one = 1;
    const double wide_one = 1;
    if (!IsFloat(dtype)) return NoKernelFor(spec, dtype);
    const void* const value = dtype == DType::kFloat32 ? static_cast<const void*>(&one) : &wide_one;
    ASSIGN_OR_RETURN(kernel->one_, context.Keep(value, SizeOf(dtype)));
    for (const EinsumStep& step : kernel->plan_.steps) {
      ASSIGN_OR_RETURN(const StridedCopy a, StridedCopy::Of(spec, dtype, step.move_a));
      ASSIGN_OR_RETURN(const StridedCopy b, StridedCopy::Of(spec, dtype, step.move_b));
      kernel->copies_.emplace_back(a, b);
      ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product, MakeProduct(spec, step.product, context));
      kernel->products_.push_back(std::move(product));
    }
    ASSIGN_OR_RETURN(kernel->to_result_, StridedCopy::Of(spec, dtype, kernel->plan_.to_result));
    kernel->scratch_ = (kernel->plan_.bytes + 255) / 256 * 256;
    return kernel;
  }

  int64_t workspace_bytes() const override {
    int64_t own = 0;
    for (const auto& product : products_) own = std::max(own, product->workspace_bytes());
    return scratch_ + own;
  }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const cudaStream_t on = static_cast<CudaStream&>(stream).get();
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    for (size_t k = 0; k < products_.size(); ++k) {
      const EinsumStep& step = plan_.steps[k];
      RETURN_IF_ERROR(copies_[k].first.Run(on, AddressOf(step.a, arguments), workspace + step.a_offset));
      RETURN_IF_ERROR(copies_[k].second.Run(on, AddressOf(step.b, arguments), workspace + step.b_offset));
      const void* inputs[] = {workspace + step.a_offset, workspace + step.b_offset};
      void* outputs[] = {workspace + step.y_offset};
      RETURN_IF_ERROR(
          products_[k]->Launch(stream, {inputs, outputs, arguments.scalars, workspace + scratch_}));
    }
    return to_result_.Run(on, AddressOf(plan_.last, arguments), arguments.outputs[0]);
  }

 private:
  EinsumKernel() = default;

  const void* AddressOf(const EinsumTerm& term, const KernelArguments& arguments) const {
    if (term.operand == kEinsumOnes) return one_;
    if (term.operand >= 0) return arguments.inputs[term.operand];
    return static_cast<const std::byte*>(arguments.workspace) + term.offset;
  }

  EinsumPlan plan_;
  const void* one_ = nullptr;
  std::vector<std::pair<StridedCopy, StridedCopy>> copies_;
  std::vector<std::unique_ptr<Kernel>> products_;
  StridedCopy to_result_;
  int64_t scratch_ = 0;
};

}  // namespace

void RegisterEinsumKernels(KernelRegistry& registry) { registry.Add("Einsum", "", EinsumKernel::Make); }

}  // namespace pipec::cuda
