#include "runtime/device/operands/sums.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/device/operands/check.h"

namespace pipec {
namespace {

class FirstOrLater : public Kernel {
 public:
  FirstOrLater(std::unique_ptr<Kernel> first, std::unique_ptr<Kernel> later)
      : first_(std::move(first)), later_(std::move(later)) {}

  int64_t workspace_bytes() const override {
    return std::max(first_->workspace_bytes(), later_->workspace_bytes());
  }
  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    return (arguments.first_microbatch ? first_ : later_)->Launch(stream, arguments);
  }

 private:
  const std::unique_ptr<Kernel> first_, later_;
};

}  // namespace

absl::StatusOr<KernelSpec> WithoutSums(const KernelSpec& spec, bool adds) {
  if (!adds) {
    return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, "): its kernel does not add to ",
                                                 "sums of microbatches"));
  }
  if (spec.inputs.size() < spec.outputs.size())
    return Invalid(spec, absl::StrCat("it has ", Counted(spec.inputs.size(), "operand", "operands"),
                                      ", wanted a sum for each of ", spec.outputs.size(), " results"));
  KernelSpec own = spec;
  own.accumulates = true;
  own.inputs.resize(spec.inputs.size() - spec.outputs.size());
  for (size_t k = 0; k < spec.outputs.size(); ++k) {
    const KernelOperand &sum = spec.inputs[own.inputs.size() + k], &result = spec.outputs[k];
    if (sum.present != result.present || (sum.present && sum.type != result.type))
      return Invalid(spec, absl::StrCat("operand ", own.inputs.size() + k, " is not a sum like result ", k));
    if (sum.present && sum.type.dtype != DType::kFloat32 && sum.type.dtype != DType::kFloat64)
      return NoKernelFor(spec, sum.type.dtype);
  }
  return own;
}

std::unique_ptr<Kernel> MakeFirstOrLater(std::unique_ptr<Kernel> first, std::unique_ptr<Kernel> later) {
  return std::make_unique<FirstOrLater>(std::move(first), std::move(later));
}

}  // namespace pipec
