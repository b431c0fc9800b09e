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
template <typename... Ts>
struct TypeList {};

using Floats = TypeList<float, double, __half, __nv_bfloat16>;
using WideFloats = TypeList<float, double>;
// Indices, counts, masks and bytes; what computes in other integers is not for a GPU.
using SignedIntegers = TypeList<int64_t, int32_t, int8_t>;
using Integers = TypeList<int64_t, int32_t, int8_t, uint8_t>;
using Bools = TypeList<bool>;

template <typename... As, typename... Bs>
TypeList<As..., Bs...> Join(TypeList<As...>, TypeList<Bs...>);
using Numbers = decltype(Join(Floats(), Integers()));
using SignedNumbers = decltype(Join(Floats(), SignedIntegers()));
using NumbersAndBool = decltype(Join(Numbers(), Bools()));

// The element type of a C++ type.
template <typename T>
inline constexpr DType kDType = DType::kUndefined;
#define PIPEC_DTYPE(type, name) \
  template <>                   \
  inline constexpr DType kDType<type> = DType::name;
PIPEC_DTYPE(float, kFloat32)
PIPEC_DTYPE(double, kFloat64)
PIPEC_DTYPE(__half, kFloat16)
PIPEC_DTYPE(__nv_bfloat16, kBFloat16)
PIPEC_DTYPE(int64_t, kInt64)
PIPEC_DTYPE(int32_t, kInt32)
PIPEC_DTYPE(int16_t, kInt16)
PIPEC_DTYPE(int8_t, kInt8)
PIPEC_DTYPE(uint16_t, kUint16)
PIPEC_DTYPE(uint8_t, kUint8)
PIPEC_DTYPE(bool, kBool)
#undef PIPEC_DTYPE

// make(TypeTag<T>()) of the T of the list that is the element type, which gives the kernel.
template <typename... Ts, typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> ForTypes(TypeList<Ts...>, const KernelSpec& spec, DType dtype,
                                                 const Make& make) {
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = nullptr;
  const bool found =
      ((kDType<Ts> == dtype ? (static_cast<void>(kernel = make(TypeTag<Ts>())), true) : false) || ...);
  if (!found) return NoKernelFor(spec, dtype);
  return kernel;
}
template <typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> ForWideFloats(const KernelSpec& spec, DType dtype, const Make& make) {
  return ForTypes(WideFloats(), spec, dtype, make);
}
template <typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> ForAllFloats(const KernelSpec& spec, DType dtype, const Make& make) {
  return ForTypes(Floats(), spec, dtype, make);
}

// The same over the element's size: movement does not care what it moves. T: uint8_t, uint16_t, uint32_t or uint64_t.
template <typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> ForSize(const KernelSpec& spec, DType dtype, const Make& make) {
  switch (SizeOf(dtype)) {
    case 1:
      return make(TypeTag<uint8_t>());
    case 2:
      return make(TypeTag<uint16_t>());
    case 4:
      return make(TypeTag<uint32_t>());
    case 8:
      return make(TypeTag<uint64_t>());
    default:
      return NoKernelFor(spec, dtype);
  }
}

}  // namespace pipec::cuda
