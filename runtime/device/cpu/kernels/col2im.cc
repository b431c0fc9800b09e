// Col2Im (X, image_shape, block_shape) -> (Y): blocks laid back over the image that they were cut out of,
// added up where they meet. X (N, C * taps of a block, blocks), Y (N, C, image).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {
namespace {

struct Blocks {
  Ints image, strides, dilations, before, after;
  int64_t planes = 0, taps = 0, blocks = 0;  // N * C; of one plane

  // How many blocks lie along each axis; InvalidArgument unless they are `blocks`, with `taps` taps.
  absl::StatusOr<Ints> Counts(const Ints& block) const {
    Ints counts;
    double all = 1, all_taps = 1;
    for (size_t i = 0; i < image.size(); ++i) {
      if (block[i] < 1 || block[i] > taps)
        return absl::InvalidArgumentError(absl::StrCat("the block has size ", block[i], " along axis ", i));
      const int64_t room = image[i] + before[i] + after[i] - dilations[i] * (block[i] - 1) - 1;
      counts.push_back(room < 0 ? 0 : room / strides[i] + 1);
      all *= static_cast<double>(counts.back());
      all_taps *= static_cast<double>(block[i]);
    }
    if (all_taps != static_cast<double>(taps) || all != static_cast<double>(blocks)) {
      return absl::InvalidArgumentError(absl::StrCat("the image has ", all, " blocks of ", all_taps,
                                                     " places, X has ", blocks, " of ", taps));
    }
    return counts;
  }
};

template <typename T>
void AddPlane(const Blocks& b, const Ints& block, const Ints& counts, const T* x, T* y) {
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

// The attribute's n values, each at least `least`, which is what they are where it is absent.
absl::StatusOr<Ints> ReadAttribute(const KernelSpec& spec, absl::string_view name, size_t n, int64_t least) {
  const std::vector<int64_t> given = spec.attributes.Ints(name);
  if (given.empty()) return Ints(n, least);
  Ints values(given.begin(), given.end());
  const auto out_of_range = [least](int64_t v) { return v < least || v >= int64_t{1} << 31; };
  if (values.size() != n || std::any_of(values.begin(), values.end(), out_of_range)) {
    return Invalid(spec, absl::StrCat(name, " wants ", n, " numbers of ", least, " or more, got ",
                                      ToString(Shape(given.begin(), given.end()))));
  }
  return values;
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 3, .max_inputs = 3}));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  const int64_t rank = static_cast<int64_t>(y.shape.size()) - 2;
  if (x.shape.size() != 3 || rank < 1 || y.shape[0] != x.shape[0] || y.shape[1] < 1 ||
      x.shape[1] % y.shape[1] != 0) {
    return Invalid(spec, absl::StrCat("X is ", ToString(x), ", Y ", ToString(y),
                                      ", wanted whole blocks of each channel of Y"));
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y.shape}));
  RETURN_IF_ERROR(CheckInput(spec, 1, {DType::kInt64, {rank}}));
  RETURN_IF_ERROR(CheckInput(spec, 2, {DType::kInt64, {rank}}));
  Blocks b;
  b.image.assign(y.shape.begin() + 2, y.shape.end());
  ASSIGN_OR_RETURN(b.strides, ReadAttribute(spec, "strides", rank, 1));
  ASSIGN_OR_RETURN(b.dilations, ReadAttribute(spec, "dilations", rank, 1));
  ASSIGN_OR_RETURN(const Ints pads, ReadAttribute(spec, "pads", 2 * rank, 0));
  b.before.assign(pads.begin(), pads.begin() + rank);
  b.after.assign(pads.begin() + rank, pads.end());
  b.planes = y.shape[0] * y.shape[1];
  b.taps = x.shape[1] / y.shape[1], b.blocks = x.shape[2];
  return ForFloats(spec, x.dtype, [b, rank, places = NumElements(b.image)](auto zero) {
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
