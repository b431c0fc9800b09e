#include <utility>
#include <vector>

#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/widened_kernel.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

// 16 bytes of T at a time, as long as there are so many; `from` and `to` begin at aligned addresses.
template <typename T>
__global__ void __launch_bounds__(kThreads) WidenAll(const T* from, float* to, int64_t n) {
  constexpr int kSize = Vector<T>::kSize;
  for (int64_t v = FirstItem(); v < n / kSize; v += ItemStride()) {
    const Vector<T> own = LoadVector(from + v * kSize);
#pragma unroll
    for (int k = 0; k < kSize; k += 4) {
      StoreVector(to + v * kSize + k, Vector<float>{{Widen(own.values[k]), Widen(own.values[k + 1]),
                                                     Widen(own.values[k + 2]), Widen(own.values[k + 3])}});
    }
  }
  for (int64_t i = n / kSize * kSize + FirstItem(); i < n; i += ItemStride()) to[i] = Widen(from[i]);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) RoundAll(const float* from, T* to, int64_t n) {
  constexpr int kSize = Vector<T>::kSize;
  for (int64_t v = FirstItem(); v < n / kSize; v += ItemStride()) {
    Vector<T> own;
#pragma unroll
    for (int k = 0; k < kSize; k += 4) {
      const Vector<float> wide = LoadVector(from + v * kSize + k);
#pragma unroll
      for (int j = 0; j < 4; ++j) own.values[k + j] = Narrow<T>(wide.values[j]);
    }
    StoreVector(to + v * kSize, own);
  }
  for (int64_t i = n / kSize * kSize + FirstItem(); i < n; i += ItemStride()) to[i] = Narrow<T>(from[i]);
}

// An operand that is converted, or not (0 elements).
struct Place {
  int64_t elements = 0, offset = 0;  // in the workspace, bytes
};

template <typename T>
class WidenedKernel : public Kernel {
 public:
  WidenedKernel(std::unique_ptr<Kernel> kernel, const KernelSpec& spec)
      : kernel_(std::move(kernel)),
        inputs_(PlacesOf(spec.inputs)),
        outputs_(PlacesOf(spec.outputs)),
        in_(inputs_.size()),
        out_(outputs_.size()) {}

  int64_t workspace_bytes() const override { return own_bytes_ + kernel_->workspace_bytes(); }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const cudaStream_t on = static_cast<CudaStream&>(stream).get();
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    const auto wide = [workspace](const Place& place) {
      return reinterpret_cast<float*>(workspace + place.offset);
    };
    for (size_t k = 0; k < inputs_.size(); ++k) {
      in_[k] = arguments.inputs[k];
      if (inputs_[k].elements == 0) continue;
      const auto* const from = static_cast<const T*>(in_[k]);
      RETURN_IF_ERROR(pipec::Launch(WidenAll<T>, BlocksFor(inputs_[k].elements), kThreads, on, from,
                                    wide(inputs_[k]), inputs_[k].elements));
      in_[k] = wide(inputs_[k]);
    }
    for (size_t k = 0; k < outputs_.size(); ++k)
      out_[k] = outputs_[k].elements == 0 ? arguments.outputs[k] : wide(outputs_[k]);
    RETURN_IF_ERROR(
        kernel_->Launch(stream, {in_.data(), out_.data(), arguments.scalars, workspace + own_bytes_}));
    for (size_t k = 0; k < outputs_.size(); ++k) {
      if (outputs_[k].elements == 0) continue;
      RETURN_IF_ERROR(pipec::Launch(RoundAll<T>, BlocksFor(outputs_[k].elements), kThreads, on,
                                    wide(outputs_[k]), static_cast<T*>(arguments.outputs[k]),
                                    outputs_[k].elements));
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Place> PlacesOf(const std::vector<KernelOperand>& operands) {
    std::vector<Place> places(operands.size());
    for (size_t k = 0; k < operands.size(); ++k) {
      if (!operands[k].present || !IsSmallFloat(operands[k].type.dtype)) continue;
      places[k] = {operands[k].type.elements(), own_bytes_};
      own_bytes_ += (places[k].elements * static_cast<int64_t>(sizeof(float)) + 255) / 256 * 256;
    }
    return places;
  }

  const std::unique_ptr<Kernel> kernel_;
  int64_t own_bytes_ = 0;
  const std::vector<Place> inputs_, outputs_;
  std::vector<const void*> in_;  // what the kernel is launched with
  std::vector<void*> out_;
};

}  // namespace

bool IsSmall(const KernelSpec& spec) {
  return !spec.inputs.empty() && IsSmallFloat(spec.inputs[0].type.dtype);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeWidenedKernel(const KernelSpec& spec, CudaContext& context,
                                                          PrepareFunction prepare) {
  KernelSpec wide = spec;
  for (auto* operands : {&wide.inputs, &wide.outputs}) {
    for (KernelOperand& operand : *operands) {
      if (operand.present && IsSmallFloat(operand.type.dtype)) operand.type.dtype = DType::kFloat32;
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, prepare(wide, context));
  if (spec.inputs[0].type.dtype == DType::kFloat16)
    return std::make_unique<WidenedKernel<__half>>(std::move(kernel), spec);
  return std::make_unique<WidenedKernel<__nv_bfloat16>>(std::move(kernel), spec);
}

}  // namespace pipec::cuda
