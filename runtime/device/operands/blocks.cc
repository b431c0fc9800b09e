#include "runtime/device/operands/blocks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// By the attributes.
absl::StatusOr<Shape> PooledShape(const KernelSpec& spec) {
  const Shape& x = spec.inputs[0].type.shape;
  if (x.size() < 3) return Invalid(spec, absl::StrCat("X is ", ToString(x), ", wanted rank 3 or more"));
  const size_t rank = x.size() - 2;
  const std::vector<int64_t> kernel = spec.attributes.Ints("kernel_shape");
  std::vector<int64_t> strides = spec.attributes.Ints("strides"), pads = spec.attributes.Ints("pads");
  if (strides.empty()) strides.assign(rank, 1);
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank) {
    return Invalid(spec, absl::StrCat("kernel_shape, strides and pads do not fit ", rank, " spatial axes"));
  }
  Shape shape = x;
  for (size_t i = 0; i < rank; ++i) {
    constexpr int64_t kMost = int64_t{1} << 31;
    for (int64_t value : {kernel[i], strides[i], pads[i], pads[rank + i], x[2 + i]}) {
      if (value < 0 || value >= kMost)
        return Invalid(spec, absl::StrCat("kernel, stride or padding ", value));
    }
    shape[2 + i] = (x[2 + i] - 1) * strides[i] + kernel[i] - pads[i] - pads[rank + i];
    if (shape[2 + i] < 0) return Invalid(spec, "the padding is wider than what the kernel reads");
  }
  return shape;
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

}  // namespace

absl::StatusOr<Shape> PooledShapeOf(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 3}));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, {DType::kInt64, x.shape}));
  ASSIGN_OR_RETURN(const Shape pooled, PooledShape(spec));
  if (y.shape.size() != x.shape.size()) return Invalid(spec, absl::StrCat("Y is ", ToString(y)));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, Has(spec, 2) ? y.shape : pooled}));
  for (size_t i = 0; i < pooled.size(); ++i) {
    if (pooled[i] > y.shape[i]) {
      return Invalid(spec, absl::StrCat("Y is ", ToString(y), ", what was pooled ", ToString(pooled)));
    }
  }
  return pooled;
}

absl::StatusOr<ImageBlocks> ImageBlocks::Of(const KernelSpec& spec) {
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
  ImageBlocks b;
  b.image.assign(y.shape.begin() + 2, y.shape.end());
  ASSIGN_OR_RETURN(b.strides, ReadAttribute(spec, "strides", rank, 1));
  ASSIGN_OR_RETURN(b.dilations, ReadAttribute(spec, "dilations", rank, 1));
  ASSIGN_OR_RETURN(const Ints pads, ReadAttribute(spec, "pads", 2 * rank, 0));
  b.before.assign(pads.begin(), pads.begin() + rank);
  b.after.assign(pads.begin() + rank, pads.end());
  b.planes = y.shape[0] * y.shape[1];
  b.taps = x.shape[1] / y.shape[1], b.blocks = x.shape[2];
  return b;
}

absl::StatusOr<Ints> ImageBlocks::Counts(const Ints& block) const {
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

}  // namespace pipec
