// A kernel from a lambda, for kernels that are one function of their operands once Prepare has looked at
// their types.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {

// The domain of pipec's helper ops (compiler/ops/README.md).
inline constexpr absl::string_view kPipecDomain = "ai.pipec";

// run: absl::Status(const KernelArguments&).
template <typename Run>
std::unique_ptr<Kernel> MakeKernel(int64_t workspace_bytes, Run run) {
  class LambdaKernel : public Kernel {
   public:
    LambdaKernel(int64_t workspace_bytes, Run run)
        : workspace_bytes_(workspace_bytes), run_(std::move(run)) {}
    int64_t workspace_bytes() const override { return workspace_bytes_; }
    absl::Status Launch(Stream&, const KernelArguments& arguments) override { return run_(arguments); }

   private:
    const int64_t workspace_bytes_;
    Run run_;
  };
  return std::make_unique<LambdaKernel>(workspace_bytes, std::move(run));
}

// make(zero), with a zero of the element type `dtype`, gives the kernel.
template <typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> ForFloats(const KernelSpec& spec, DType dtype, const Make& make) {
  if (dtype == DType::kFloat32) return make(float{0});
  if (dtype == DType::kFloat64) return make(double{0});
  return NoKernelFor(spec, dtype);
}

}  // namespace pipec::cpu
