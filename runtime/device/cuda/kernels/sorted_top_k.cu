// TopK by a sort of whole rows (device_wide.h): elements become unsigned keys whose order is the one asked for,
// below the number of their row. NaN comes before all others among the largest, after them among the smallest; of
// equal elements the first comes first, since the sort is stable, and 0 equals -0.
#include <bit>
#include <type_traits>

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/kernels/device_wide.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/sorted_top_k.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

using Types = TypeList<float, double, __half, __nv_bfloat16, int64_t, int32_t>;

__device__ __forceinline__ uint32_t BitsOf(float x) { return __float_as_uint(x); }
__device__ __forceinline__ uint64_t BitsOf(double x) {
  return static_cast<uint64_t>(__double_as_longlong(x));
}

// Least first.
template <typename C>
__device__ __forceinline__ auto KeyOf(C x, bool largest) {
  using Key = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;
  constexpr Key kSign = Key{1} << (sizeof(C) * 8 - 1);
  Key key = 0;
  if constexpr (std::is_integral_v<C>) {
    key = static_cast<Key>(x) ^ kSign;
  } else {
    if (x != x) return largest ? Key{0} : static_cast<Key>(~Key{0});
    const Key bits = BitsOf(x == C(0) ? C(0) : x);
    key = (bits & kSign) != 0 ? static_cast<Key>(~bits) : bits | kSign;
  }
  return largest ? static_cast<Key>(~key) : key;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    MakeKeys(const T* x, uint64_t* keys, int32_t* places, const TopKOrder order) {
  const AxisView& view = order.view;
  for (int64_t i = FirstItem(); i < view.outer * view.length * view.inner; i += ItemStride()) {
    const int64_t row = i / view.length, place = i - row * view.length;
    const T value = x[(row / view.inner * view.length + place) * view.inner + row % view.inner];
    keys[i] = KeyOf(Widen(value), order.largest);
    if constexpr (sizeof(T) < 8) keys[i] |= static_cast<uint64_t>(row) << 32;
    places[i] = static_cast<int32_t>(place);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    TakeFirst(const T* x, const int32_t* sorted, const int64_t* asked, T* values, int64_t* places,
              const TopKOrder order, const FaultSite fault) {
  if (*asked != order.k && FirstItem() == 0) LeaveNote(fault, *asked, 0);
  const AxisView& view = order.view;
  for (int64_t i = FirstItem(); i < view.outer * view.inner * order.k; i += ItemStride()) {
    const int64_t row = i / order.k, nth = i - row * order.k, place = sorted[row * view.length + nth];
    const int64_t to = (row / view.inner * order.k + nth) * view.inner + row % view.inner;
    values[to] = x[(row / view.inner * view.length + place) * view.inner + row % view.inner];
    places[to] = place;
  }
}

int64_t Padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

// Else a block finds one after the other: k times over the row.
bool IsSorted(const TopKOrder& order, DType dtype) {
  const int64_t rows = order.view.outer * order.view.inner;
  const bool keys = SizeOf(dtype) < 8 ? rows <= int64_t{1} << 31 : rows == 1;
  return order.k > 16 && order.view.length >= 256 && order.view.length < int64_t{1} << 31 && rows > 0 && keys;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSortedTopK(const KernelSpec& spec, const TopKOrder& order,
                                                       const FaultSite& fault) {
  const DType dtype = spec.inputs[0].type.dtype;
  const int64_t rows = order.view.outer * order.view.inner, n = rows * order.view.length;
  const int bits = SizeOf(dtype) < 8 ? 32 + std::bit_width(static_cast<uint64_t>(rows - 1)) : 64;
  size_t scratch = 0;
  RETURN_IF_ERROR(CudaStatus(DeviceSortBytes(n, bits, &scratch), "the workspace of a device-wide sort"));
  const int64_t key_bytes = Padded(n * 8), place_bytes = Padded(n * 4);
  return ForTypes(Types(), spec, dtype, [=](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeKernel(
        2 * (key_bytes + place_bytes) + static_cast<int64_t>(scratch),
        [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
          auto* at = static_cast<std::byte*>(arguments.workspace);
          const auto take = [&at](int64_t bytes) { return std::exchange(at, at + bytes); };
          auto *const keys = reinterpret_cast<uint64_t*>(take(key_bytes)), *const sorted_keys =
                                                                               reinterpret_cast<uint64_t*>(
                                                                                   take(key_bytes));
          auto *const places = reinterpret_cast<int32_t*>(take(place_bytes)), *const sorted =
                                                                                  reinterpret_cast<int32_t*>(
                                                                                      take(place_bytes));
          RETURN_IF_ERROR(Launch(MakeKeys<T>, BlocksFor(n), kThreads, stream, Input<T>(arguments, 0), keys,
                                 places, order));
          RETURN_IF_ERROR(
              CudaStatus(DeviceSort(keys, sorted_keys, places, sorted, n, bits, at, scratch, stream),
                         "a device-wide sort"));
          return Launch(TakeFirst<T>, BlocksFor(rows * order.k), kThreads, stream, Input<T>(arguments, 0),
                        sorted, Input<int64_t>(arguments, 1), Output<T>(arguments, 0),
                        Output<int64_t>(arguments, 1), order, fault);
        });
  });
}

}  // namespace pipec::cuda
