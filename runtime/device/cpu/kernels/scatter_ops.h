// How an update meets the element it is written to: ScatterElements' and
// ScatterND's reductions.
#pragma once

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/kernels/vector_loop.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {

struct ReplaceUpdate {
  template <typename T>
  static PIPEC_INLINE T Of(T, T update) {
    return update;
  }
};
struct AddUpdate {
  template <typename T>
  static PIPEC_INLINE T Of(T old, T update) {
    return static_cast<T>(static_cast<Wrapping<T>>(old) + static_cast<Wrapping<T>>(update));
  }
};
struct MulUpdate {
  template <typename T>
  static PIPEC_INLINE T Of(T old, T update) {
    return static_cast<T>(static_cast<Wrapping<T>>(old) * static_cast<Wrapping<T>>(update));
  }
};
struct MaxUpdate {
  template <typename T>
  static PIPEC_INLINE T Of(T old, T update) {
    return old > update || old != old ? old : update;
  }
};
struct MinUpdate {
  template <typename T>
  static PIPEC_INLINE T Of(T old, T update) {
    return old < update || old != old ? old : update;
  }
};

// make(Op(), Type<T>()) for the attribute reduction and the element type;
// replacing only looks at the size. Result: a pointer. Errors: InvalidArgument
// for an unknown reduction, Unimplemented for a type without it.
template <typename Result, typename Make>
absl::StatusOr<Result> ForUpdate(const KernelSpec &spec, DType dtype, const Make &make) {
  const std::string reduction = spec.attributes.String("reduction", "none");
  const auto typed = [&](auto op) {
    return ForType<Result>(Numbers(), dtype, [&](auto t) -> Result { return make(op, t); });
  };
  Result result = nullptr;
  if (reduction == "none") {
    result = ForSize<Result>(SizeOf(dtype), [&](auto t) -> Result { return make(ReplaceUpdate(), t); });
  } else if (reduction == "add") {
    result = typed(AddUpdate());
  } else if (reduction == "mul") {
    result = typed(MulUpdate());
  } else if (reduction == "max") {
    result = typed(MaxUpdate());
  } else if (reduction == "min") {
    result = typed(MinUpdate());
  } else {
    return Invalid(spec, absl::StrCat("reduction is ", reduction, ", wanted none, add, mul, max or min"));
  }
  if (result == nullptr) return NoKernelFor(spec, dtype);
  return result;
}

// The operand that updates are written over, to the result.
inline void CopyBytes(const void *from, void *to, int64_t bytes) {
  ParallelFor(bytes, int64_t{1} << 18, [=](int64_t begin, int64_t end) {
    std::memcpy(static_cast<std::byte *>(to) + begin, static_cast<const std::byte *>(from) + begin,
                end - begin);
  });
}

}  // namespace pipec::cpu
