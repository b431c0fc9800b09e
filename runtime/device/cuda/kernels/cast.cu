// Cast between bool, integers and floats of 16 bits and more. Floats become integers by truncation, held to the
// integer's range; integers that do not fit wrap around; anything but 0 is true.
#include "runtime/device/cuda/kernels/conversions.h"
#include "runtime/device/cuda/kernels/integers.cuh"
#include "runtime/device/cuda/kernels/pointwise.cuh"
#include "runtime/device/cuda/kernels/register.h"

namespace pipec::cuda {
namespace {

// To: the type that the result is computed in.
template <typename To>
struct Convert {
  template <typename X>
  static __device__ __forceinline__ To Of(X x) {
    if constexpr (std::is_same_v<To, bool>) {
      return x != X(0);
    } else if constexpr (std::is_floating_point_v<X> && std::is_integral_v<To>) {
      return Saturated<To>(x);
    } else {
      return static_cast<To>(x);
    }
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& x = spec.inputs[0].type;
  const auto to = static_cast<DType>(spec.attributes.Int("to", 0));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {to, x.shape}));
  using Types = TypeList<float, double, __half, __nv_bfloat16, int64_t, int32_t, int8_t, uint8_t, bool>;
  return ForTypes(Types(), spec, x.dtype, [&, n = x.elements()](auto from) {
    using X = typename decltype(from)::type;
    return ForTypes(Types(), spec, to, [n](auto tag) {
      using Y = typename decltype(tag)::type;
      return MapKernel<Convert<Compute<Y>>, X, Y>(n);
    });
  });
}

template <typename X, typename Y>
absl::Status ConvertRow(Stream& stream, const void* from, void* to, int64_t n) {
  if (n == 0) return absl::OkStatus();
  return LaunchMap<Convert<Compute<Y>>>(static_cast<CudaStream&>(stream).get(), static_cast<const X*>(from),
                                        static_cast<Y*>(to), n);
}

class CudaConversions : public SmallFloatConversions {
 public:
  absl::Status Widen(Stream& stream, DType dtype, const void* from, float* to, int64_t n) const override {
    return dtype == DType::kFloat16 ? ConvertRow<__half, float>(stream, from, to, n)
                                    : ConvertRow<__nv_bfloat16, float>(stream, from, to, n);
  }
  absl::Status Round(Stream& stream, DType dtype, const float* from, void* to, int64_t n) const override {
    return dtype == DType::kFloat16 ? ConvertRow<float, __half>(stream, from, to, n)
                                    : ConvertRow<float, __nv_bfloat16>(stream, from, to, n);
  }
  bool reads_host_memory() const override { return false; }
};

}  // namespace

const SmallFloatConversions& Conversions() {
  static const CudaConversions conversions;
  return conversions;
}

void RegisterCastKernels(KernelRegistry& registry) { registry.Add("Cast", "", Prepare); }

}  // namespace pipec::cuda
