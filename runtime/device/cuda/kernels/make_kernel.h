// A kernel from a lambda that launches, for ops that are a few launches once Prepare has looked at their types; and the
// element types that kernels are made for.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/kernel_registry.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/check.h"

namespace pipec::cuda {

// The domain of pipec's helper ops (compiler/ops/README.md).
inline constexpr absl::string_view kPipecDomain = "ai.pipec";

// run: absl::Status(cudaStream_t, const KernelArguments&).
template <typename Run>
std::unique_ptr<Kernel> MakeKernel(int64_t workspace_bytes, Run run) {
  class LaunchingKernel : public Kernel {
   public:
    LaunchingKernel(int64_t workspace_bytes, Run run)
        : workspace_bytes_(workspace_bytes), run_(std::move(run)) {}
    int64_t workspace_bytes() const override { return workspace_bytes_; }
    absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
      return run_(static_cast<CudaStream&>(stream).get(), arguments);
    }

   private:
    const int64_t workspace_bytes_;
    Run run_;
  };
  return std::make_unique<LaunchingKernel>(workspace_bytes, std::move(run));
}

template <typename T>
struct TypeTag {
  using type = T;
};

// make(TypeTag<T>()) of the element type, which gives the kernel.
template <typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> ForWideFloats(const KernelSpec& spec, DType dtype, const Make& make) {
  if (dtype == DType::kFloat32) return make(TypeTag<float>());
  if (dtype == DType::kFloat64) return make(TypeTag<double>());
  return NoKernelFor(spec, dtype);
}
template <typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> ForAllFloats(const KernelSpec& spec, DType dtype, const Make& make) {
  if (dtype == DType::kFloat16) return make(TypeTag<__half>());
  if (dtype == DType::kBFloat16) return make(TypeTag<__nv_bfloat16>());
  return ForWideFloats(spec, dtype, make);
}

}  // namespace pipec::cuda
