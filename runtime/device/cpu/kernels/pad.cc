// Pad in its modes constant, edge, reflect and wrap. Negative padding cuts.
#include "runtime/device/operands/pad.h"

#include <memory>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/indexed_copy.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/strided_copy.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

class PadKernel : public Kernel {
 public:
  PadKernel(const KernelSpec& spec, const PadOperands& operands)
      : x_(spec.inputs[0].type), y_(spec.outputs[0].type), operands_(operands) {}

  // Finds the places.
  virtual void Place(const Padding& padding) = 0;

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    if (!operands_.known()) {
      ASSIGN_OR_RETURN(
          const Padding padding,
          operands_.Place(arguments.inputs[1], operands_.has_axes() ? arguments.inputs[3] : nullptr));
      Place(padding);
    }
    Run(arguments);
    return absl::OkStatus();
  }

 protected:
  virtual void Run(const KernelArguments& arguments) const = 0;

  const TensorType x_, y_;
  const PadOperands operands_;
};

// Mode constant: the result is filled, then what is left of the operand is copied into it.
class ConstantPadKernel : public PadKernel {
 public:
  ConstantPadKernel(const KernelSpec& spec, const PadOperands& operands)
      : PadKernel(spec, operands), has_value_(Has(spec, 2)) {
    const int64_t elements[] = {y_.elements()}, from[] = {0}, to[] = {1};
    fill_ = StridedCopy(SizeOf(y_.dtype), elements, from, to);
  }

  void Place(const Padding& padding) override {
    const PadKept kept = KeptOf(x_.shape, y_.shape, padding);
    from_ = kept.from * SizeOf(x_.dtype);
    to_ = kept.to * SizeOf(x_.dtype);
    copy_ = StridedCopy(SizeOf(x_.dtype), kept.shape, Strides(x_.shape), Strides(y_.shape));
  }

 private:
  void Run(const KernelArguments& arguments) const override {
    static constexpr uint64_t kZero = 0;
    fill_.Run(has_value_ ? arguments.inputs[2] : &kZero, arguments.outputs[0]);
    copy_.Run(static_cast<const std::byte*>(arguments.inputs[0]) + from_,
              static_cast<std::byte*>(arguments.outputs[0]) + to_);
  }

  const bool has_value_;
  StridedCopy fill_, copy_;
  int64_t from_ = 0, to_ = 0;  // bytes
};

// The other modes: the result is made of elements of the operand.
class MirrorPadKernel : public PadKernel {
 public:
  MirrorPadKernel(const KernelSpec& spec, const PadOperands& operands)
      : PadKernel(spec, operands), copy_(x_.shape, y_.shape) {}

  void Place(const Padding& padding) override {
    for (size_t i = 0; i < y_.shape.size(); ++i) {
      for (int64_t at = 0; at < y_.shape[i]; ++at) {
        copy_.Set(static_cast<int>(i), at,
                  PlaceInside(operands_.mode(), at - padding.before[i], x_.shape[i]));
      }
    }
  }

 private:
  void Run(const KernelArguments& arguments) const override {
    copy_.Run(SizeOf(x_.dtype), arguments.inputs[0], arguments.outputs[0]);
  }

  IndexedCopy copy_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const PadOperands operands, PadOperands::Of(spec));
  std::unique_ptr<PadKernel> kernel;
  if (operands.mode() == PadMode::kConstant) {
    kernel = std::make_unique<ConstantPadKernel>(spec, operands);
  } else {
    kernel = std::make_unique<MirrorPadKernel>(spec, operands);
  }
  if (operands.known()) kernel->Place(operands.padding());
  return kernel;
}

}  // namespace

void RegisterPadKernels(KernelRegistry& registry) { registry.Add("Pad", "", Prepare); }

}  // namespace pipec::cpu
