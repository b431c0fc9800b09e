#include "runtime/device/activated_product.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {
namespace {

class ActivatedProduct : public Kernel {
 public:
  ActivatedProduct(std::unique_ptr<Kernel> product, std::unique_ptr<Kernel> activation, bool gradient)
      : product_(std::move(product)), activation_(std::move(activation)), gradient_(gradient) {}

  int64_t workspace_bytes() const override {
    return std::max(product_->workspace_bytes(), activation_->workspace_bytes());
  }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    RETURN_IF_ERROR(product_->Launch(stream, arguments));
    const void* const operands[] = {arguments.outputs[0], gradient_ ? arguments.inputs[3] : nullptr};
    return activation_->Launch(stream, {operands, arguments.outputs, arguments.scalars, arguments.workspace});
  }

 private:
  const std::unique_ptr<Kernel> product_, activation_;
  const bool gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeActivatedProduct(
    const KernelSpec& spec,
    const std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelSpec& spec)>& prepare) {
  const bool gradient = Has(spec, 3);
  KernelSpec product = spec;
  product.attributes.Erase("activation");
  product.inputs.resize(std::min<size_t>(product.inputs.size(), 3));
  KernelSpec activation{.op = gradient ? "GeluGrad" : "Gelu",
                        .domain = gradient ? spec.domain : "",
                        .name = spec.name,
                        .inputs = {{spec.outputs[0].type}},
                        .outputs = {spec.outputs[0]}};
  activation.attributes.Set("approximate", std::string("tanh"));
  if (gradient) activation.inputs.push_back(spec.inputs[3]);
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> first, prepare(product));
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> second, prepare(activation));
  return std::make_unique<ActivatedProduct>(std::move(first), std::move(second), gradient);
}

}  // namespace pipec
