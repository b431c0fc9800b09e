// Einsum (operands...) -> (Y), by copies and products as operands/einsum.h plans them.
#include "runtime/device/operands/einsum.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/copy_kernel.h"
#include "runtime/device/cpu/kernels/matrix_product.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

class EinsumKernel : public Kernel {
 public:
  EinsumKernel(DType dtype, EinsumPlan plan) : plan_(std::move(plan)) {
    if (dtype == DType::kFloat32) {
      const float one = 1;
      std::memcpy(&one_, &one, sizeof(one));
    } else if (dtype == DType::kFloat64) {
      const double one = 1;
      std::memcpy(&one_, &one, sizeof(one));
    } else {
      one_ = 1;  // little-endian: of any size of integer
    }
    for (const EinsumStep& step : plan_.steps)
      copies_.push_back({CopyOf(dtype, step.move_a), CopyOf(dtype, step.move_b)});
    to_result_ = CopyOf(dtype, plan_.to_result);
  }

  absl::Status MakeProducts(const KernelSpec& spec) {
    for (const EinsumStep& step : plan_.steps) {
      ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product, MakeProduct(spec, step.product));
      products_.push_back(std::move(product));
    }
    return absl::OkStatus();
  }

  int64_t workspace_bytes() const override {
    int64_t own = 0;
    for (const auto& product : products_) own = std::max(own, product->workspace_bytes());
    return plan_.bytes + own;
  }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    for (size_t k = 0; k < products_.size(); ++k) {
      const EinsumStep& step = plan_.steps[k];
      copies_[k].first.Run(AddressOf(step.a, arguments), workspace + step.a_offset);
      copies_[k].second.Run(AddressOf(step.b, arguments), workspace + step.b_offset);
      const void* inputs[] = {workspace + step.a_offset, workspace + step.b_offset};
      void* outputs[] = {workspace + step.y_offset};
      RETURN_IF_ERROR(
          products_[k]->Launch(stream, {inputs, outputs, arguments.scalars, workspace + plan_.bytes}));
    }
    to_result_.Run(AddressOf(plan_.last, arguments), arguments.outputs[0]);
    return absl::OkStatus();
  }

 private:
  const void* AddressOf(const EinsumTerm& term, const KernelArguments& arguments) const {
    if (term.operand == kEinsumOnes) return &one_;
    if (term.operand >= 0) return arguments.inputs[term.operand];
    return static_cast<const std::byte*>(arguments.workspace) + term.offset;
  }

  const EinsumPlan plan_;
  uint64_t one_ = 0;  // the element's bytes come first
  std::vector<std::pair<StridedCopy, StridedCopy>> copies_;
  std::vector<std::unique_ptr<Kernel>> products_;
  StridedCopy to_result_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(EinsumPlan plan, EinsumPlanOf(spec));
  auto kernel = std::make_unique<EinsumKernel>(spec.inputs[0].type.dtype, std::move(plan));
  RETURN_IF_ERROR(kernel->MakeProducts(spec));
  return kernel;
}

}  // namespace

void RegisterEinsumKernels(KernelRegistry& registry) { registry.Add("Einsum", "", Prepare); }

}  // namespace pipec::cpu
