#include "runtime/device/cpu/kernels/cast_tiny.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/base/tiny_types.h"
#include "runtime/device/cpu/kernels/convert.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/make_kernel.h"

namespace pipec::cpu {
namespace {

using MadeKernel = std::unique_ptr<Kernel>;

absl::StatusOr<TinyEncoder> EncoderOf(const KernelSpec& spec, DType to) {
  const std::string mode = spec.attributes.String("round_mode", "up");
  PowerRounding rounding = PowerRounding::kUp;
  if (mode == "down") {
    rounding = PowerRounding::kDown;
  } else if (mode == "nearest") {
    rounding = PowerRounding::kNearest;
  } else if (mode != "up") {
    return Invalid(spec, absl::StrCat("round_mode is '", mode, "', wanted up, down or nearest"));
  }
  return TinyEncoder(to, spec.attributes.Int("saturate", 1) != 0, rounding);
}

// Wide integers may be more than a float64 holds, and their low bits count.
template <typename From>
uint8_t Narrowed(From from, DType to, const TinyEncoder& encode) {
  if constexpr (std::is_integral_v<From>) {
    if (IsTinyInteger(to)) return WrapTiny(to, static_cast<int64_t>(from));
  }
  return encode(static_cast<double>(Widened(from)));
}

template <typename From>
MadeKernel Narrowing(DType to, const TinyEncoder& encode, int64_t n) {
  return MakeKernel(0, [=](const KernelArguments& arguments) {
    const From* const x = Input<From>(arguments, 0);
    uint8_t* const y = Output<uint8_t>(arguments, 0);
    ParallelFor(n, kElementGrain / 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = Narrowed(x[i], to, encode);
    });
    return absl::OkStatus();
  });
}

// A byte is one of 256: all results are known.
template <typename To>
MadeKernel LookUp(const std::array<To, 256>& table, int64_t n) {
  return MakeKernel(0, [=](const KernelArguments& arguments) {
    const uint8_t* const x = Input<uint8_t>(arguments, 0);
    To* const y = Output<To>(arguments, 0);
    ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = table[x[i]];
    });
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> PrepareTinyCast(const KernelSpec& spec, DType to) {
  const TensorType& x = spec.inputs[0].type;
  const int64_t n = x.elements();
  RETURN_IF_ERROR(CheckOutput(spec, 0, {to, x.shape}));
  MadeKernel kernel;
  if (IsTiny(x.dtype) && IsTiny(to)) {
    ASSIGN_OR_RETURN(const TinyEncoder encode, EncoderOf(spec, to));
    std::array<uint8_t, 256> table;
    for (int byte = 0; byte < 256; ++byte) {
      table[byte] = encode(DecodeTiny(x.dtype, static_cast<uint8_t>(byte)));
    }
    return LookUp(table, n);
  }
  if (IsTiny(to)) {
    ASSIGN_OR_RETURN(const TinyEncoder encode, EncoderOf(spec, to));
    kernel = ForType<MadeKernel>(
        Castable(), x.dtype, [&](auto t) { return Narrowing<typename decltype(t)::type>(to, encode, n); });
    if (kernel == nullptr) return NoKernelFor(spec, x.dtype);
    return kernel;
  }
  kernel = ForType<MadeKernel>(Castable(), to, [&](auto t) {
    using To = typename decltype(t)::type;
    const bool wraps = IsTinyInteger(x.dtype);
    std::array<To, 256> table;
    for (int byte = 0; byte < 256; ++byte) {
      const double value = DecodeTiny(x.dtype, static_cast<uint8_t>(byte));
      table[byte] = wraps ? Convert<To>(static_cast<int64_t>(value)) : Convert<To>(value);
    }
    return LookUp(table, n);
  });
  if (kernel == nullptr) return NoKernelFor(spec, to);
  return kernel;
}

}  // namespace pipec::cpu
