// Col2Im (X, image_shape, block_shape) -> (Y): blocks laid back over the image that they were cut out of,
// added up where they meet. X (N, C * taps of a block, blocks), Y (N, C, image).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/blocks.h"

namespace pipec::cpu {
namespace {

template <typename T>
void AddPlane(const ImageBlocks& b, const Ints& block, const Ints& counts, const T* x, T* y) {
  const size_t rank = b.image.size();
  for (int64_t tap = 0; tap < b.taps; ++tap) {
    for (int64_t at = 0; at < b.blocks; ++at, ++x) {
      int64_t rest_tap = tap, rest = at, place = 0, stride = 1;
      bool inside = true;
      for (size_t i = rank; i-- > 0;) {
        const int64_t k =
            rest % counts[i] * b.strides[i] + rest_tap % block[i] * b.dilations[i] - b.before[i];
        inside = inside && k >= 0 && k < b.image[i];
        place += k * stride;
        stride *= b.image[i];
        rest /= counts[i], rest_tap /= block[i];
      }
      if (inside) y[place] += *x;
    }
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const ImageBlocks b, ImageBlocks::Of(spec));
  const int64_t rank = static_cast<int64_t>(b.image.size());
  return ForFloats(spec, spec.inputs[0].type.dtype, [b, rank, places = NumElements(b.image)](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) -> absl::Status {
      const int64_t* const sizes = Input<int64_t>(arguments, 2);
      const Ints block(sizes, sizes + rank);
      ASSIGN_OR_RETURN(const Ints counts, b.Counts(block));
      ParallelFor(b.planes, 1, [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          T* const y = Output<T>(arguments, 0) + plane * places;
          std::fill_n(y, places, T{0});
          AddPlane(b, block, counts, Input<T>(arguments, 0) + plane * b.taps * b.blocks, y);
        }
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterCol2ImKernels(KernelRegistry& registry) { registry.Add("Col2Im", "", Prepare); }

}  // namespace pipec::cpu
