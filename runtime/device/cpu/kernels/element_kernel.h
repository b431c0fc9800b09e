// One result element from the element at the same place of one operand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/device.h"

namespace pipec::cpu {

// Elements worth a thread, for loops that do a few operations an element.
inline constexpr int64_t kElementGrain = 16384;

// Integer arithmetic wraps around, as NumPy's does: it is done on unsigned integers of at least 32 bits,
// where C++ defines that. Floats stay what they are.
template <typename T, bool = std::is_integral_v<T>>
struct WrappingType {
  using type = T;
};
template <typename T>
struct WrappingType<T, true> {
  using type = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
};
template <typename T>
using Wrapping = typename WrappingType<T>::type;

class ElementKernel : public Kernel {
 public:
  using Loop = void (*)(const void* x, void* y, int64_t n);

  ElementKernel(Loop loop, int64_t elements, int64_t x_bytes, int64_t y_bytes)
      : loop_(loop), elements_(elements), x_bytes_(x_bytes), y_bytes_(y_bytes) {}

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    const auto* x = static_cast<const std::byte*>(arguments.inputs[0]);
    auto* y = static_cast<std::byte*>(arguments.outputs[0]);
    ParallelFor(elements_, kElementGrain, [&](int64_t begin, int64_t end) {
      loop_(x + begin * x_bytes_, y + begin * y_bytes_, end - begin);
    });
    return absl::OkStatus();
  }

 private:
  Loop loop_;
  int64_t elements_, x_bytes_, y_bytes_;
};

}  // namespace pipec::cpu
