// A kernel from a lambda, for kernels that are one function of their operands once Prepare has looked at
// their types.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/cpu/kernels/check.h"
#include "runtime/device/device.h"

namespace pipec::cpu {

// The domain of pipec's helper ops (compiler/ops/README.md).
inline constexpr absl::string_view kPipecDomain = "ai.pipec";

// Operand i as elements of type T; null where it is absent.
template <typename T>
const T* Input(const KernelArguments& arguments, int i) {
  return static_cast<const T*>(arguments.inputs[i]);
}
template <typename T>
T* Output(const KernelArguments& arguments, int i) {
  return static_cast<T*>(arguments.outputs[i]);
}

// InvalidArgument unless operand i is absent or has exactly this type.
absl::Status CheckInput(const KernelSpec& spec, int i, const TensorType& wanted);
// The same for a type of any shape with so many elements.
absl::Status CheckInputElements(const KernelSpec& spec, int i, DType dtype, int64_t elements);
absl::Status CheckOutputElements(const KernelSpec& spec, int i, DType dtype, int64_t elements);
// Whether result i is there at all.
bool HasOutput(const KernelSpec& spec, int i);

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
