// Kernels of ops that cast their operands and result themselves (operands/own_casts.h).
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/operands/own_casts.h"

namespace pipec::cuda {
// make(tag, n times tag).
template <size_t n, typename Make, typename Tag>
absl::StatusOr<std::unique_ptr<Kernel>> WithoutCasts(const Make& make, Tag tag) {
  return [&]<size_t... i>(std::index_sequence<i...>) { return make(tag, (static_cast<void>(i), tag)...); }
  (std::make_index_sequence<n>());
}

// make(tag of float32, tags of `types`), which are float32 or Small.
template <typename Small, size_t n, typename Make, typename... Tags>
absl::StatusOr<std::unique_ptr<Kernel>> WithCasts(const std::array<DType, n>& types, const Make& make,
                                                  Tags... tags) {
  if constexpr (sizeof...(Tags) == n) {
    return make(TypeTag<float>(), tags...);
  } else if (types[sizeof...(Tags)] == DType::kFloat32) {
    return WithCasts<Small>(types, make, tags..., TypeTag<float>());
  } else {
    return WithCasts<Small>(types, make, tags..., TypeTag<Small>());
  }
}

// make(tag of `t`, in which the op computes, tags of `types`, which are its operands' and result's). Those are `t` or,
// if that is float32, each float32 or one type of 16 bits.
template <size_t n, typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> ForOwnCasts(const KernelSpec& spec, DType t,
                                                    const std::array<DType, n>& types, const Make& make) {
  DType small = t;
  for (const DType type : types) {
    if (type == t) continue;
    if (t != DType::kFloat32 || (small != t && type != small)) return NoKernelFor(spec, type);
    small = type;
  }
  if (small == t) return ForAllFloats(spec, t, [&](auto tag) { return WithoutCasts<n>(make, tag); });
  return ForTypes(TypeList<__half, __nv_bfloat16>(), spec, small,
                  [&](auto tag) { return WithCasts<typename decltype(tag)::type>(types, make); });
}

}  // namespace pipec::cuda
