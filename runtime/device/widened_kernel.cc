#include "runtime/device/widened_kernel.h"

#include <utility>
#include <vector>

#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Of what lies in the workspace, the kernel's own included: as strict as any library under a kernel is with its own.
constexpr int64_t kAlignment = 256;

// An operand that is widened, or not (kUndefined).
struct Place {
  DType dtype = DType::kUndefined;
  int64_t elements = 0, offset = 0;  // in the workspace, bytes
  std::vector<float> constant;       // its contents, where they are known at load
};

class WidenedKernel : public Kernel {
 public:
  WidenedKernel(std::unique_ptr<Kernel> kernel, std::vector<Place> inputs, std::vector<Place> outputs,
                const SmallFloatConversions &conversions)
      : kernel_(std::move(kernel)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        conversions_(conversions) {
    for (std::vector<Place> *places : {&inputs_, &outputs_}) {
      for (Place &place : *places) {
        if (place.dtype == DType::kUndefined || IsKept(place)) continue;
        place.offset = own_bytes_;
        const int64_t bytes = place.elements * static_cast<int64_t>(sizeof(float));
        own_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
      }
    }
    in_.resize(inputs_.size());
    out_.resize(outputs_.size());
  }

  int64_t workspace_bytes() const override { return own_bytes_ + kernel_->workspace_bytes(); }

  absl::Status Launch(Stream &stream, const KernelArguments &arguments) override {
    auto *const workspace = static_cast<std::byte *>(arguments.workspace);
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const Place &place = inputs_[k];
      in_[k] = arguments.inputs[k];
      if (place.dtype == DType::kUndefined) continue;
      if (IsKept(place)) {
        in_[k] = place.constant.data();
        continue;
      }
      auto *const wide = reinterpret_cast<float *>(workspace + place.offset);
      RETURN_IF_ERROR(conversions_.Widen(stream, place.dtype, arguments.inputs[k], wide, place.elements));
      in_[k] = wide;
    }
    for (size_t k = 0; k < outputs_.size(); ++k) {
      out_[k] = arguments.outputs[k];
      if (outputs_[k].dtype == DType::kUndefined) continue;
      out_[k] = workspace + outputs_[k].offset;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        const bool same =
            arguments.inputs[i] == arguments.outputs[k] && inputs_[i].elements == outputs_[k].elements;
        if (same && inputs_[i].dtype != DType::kUndefined && !IsKept(inputs_[i])) {
          out_[k] = workspace + inputs_[i].offset;
        }
      }
    }
    RETURN_IF_ERROR(
        kernel_->Launch(stream, {in_.data(), out_.data(), arguments.scalars, workspace + own_bytes_,
                                 arguments.first_microbatch}));
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const Place &place = outputs_[k];
      if (place.dtype == DType::kUndefined) continue;
      RETURN_IF_ERROR(conversions_.Round(stream, place.dtype, static_cast<const float *>(out_[k]),
                                         arguments.outputs[k], place.elements));
    }
    return absl::OkStatus();
  }

 private:
  // Whether the operand is the widened constant itself.
  bool IsKept(const Place &place) const {
    return conversions_.reads_host_memory() && !place.constant.empty();
  }

  const std::unique_ptr<Kernel> kernel_;
  std::vector<Place> inputs_, outputs_;
  const SmallFloatConversions &conversions_;
  int64_t own_bytes_ = 0;
  std::vector<const void *> in_;  // what the kernel is launched with
  std::vector<void *> out_;
};

bool IsWidened(const KernelOperand &operand) { return operand.present && IsSmallFloat(operand.type.dtype); }

// The operand becomes float32 in the specification.
Place WidenOperand(KernelOperand &operand) {
  Place place;
  if (!IsWidened(operand)) return place;
  place.dtype = operand.type.dtype;
  place.elements = operand.type.elements();
  operand.type.dtype = DType::kFloat32;
  if (operand.constant != nullptr) {
    place.constant.resize(place.elements);
    for (int64_t i = 0; i < place.elements; ++i) {
      place.constant[i] = place.dtype == DType::kFloat16
                              ? ToFloat(reinterpret_cast<const Float16 *>(operand.constant)[i])
                              : ToFloat(reinterpret_cast<const BFloat16 *>(operand.constant)[i]);
    }
    operand.constant = reinterpret_cast<const std::byte *>(place.constant.data());
  }
  return place;
}

}  // namespace

bool HasSmallFloats(const KernelSpec &spec) {
  for (const auto *operands : {&spec.inputs, &spec.outputs}) {
    for (const KernelOperand &operand : *operands) {
      if (IsWidened(operand)) return true;
    }
  }
  return false;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeWidenedKernel(const KernelSpec &spec,
                                                          const SmallFloatConversions &conversions,
                                                          const PrepareWide &prepare) {
  KernelSpec wide = spec;
  std::vector<Place> inputs, outputs;
  for (KernelOperand &operand : wide.inputs) inputs.push_back(WidenOperand(operand));
  for (KernelOperand &operand : wide.outputs) outputs.push_back(WidenOperand(operand));
  // An attribute that names the type of a result.
  for (absl::string_view name : {"dtype", "output_dtype", "precision", "to"}) {
    if (IsSmallFloat(static_cast<DType>(wide.attributes.Int(name)))) {
      wide.attributes.Set(name, static_cast<int64_t>(DType::kFloat32));
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, prepare(wide));
  return std::make_unique<WidenedKernel>(std::move(kernel), std::move(inputs), std::move(outputs),
                                         conversions);
}

}  // namespace pipec
