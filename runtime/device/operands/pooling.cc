#include "runtime/device/operands/pooling.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/operands/check.h"

namespace pipec {
namespace {

// What does not depend on the windows.
absl::StatusOr<Pooling> ReadPlanes(const KernelSpec& spec, const Shape& x, const Shape& y) {
  if (x.size() < 3 || y.size() != x.size() || x[0] != y[0] || x[1] != y[1]) {
    return Invalid(spec, absl::StrCat("X is ", ToString(x), ", Y ", ToString(y),
                                      ": wanted equal ranks of 3 or more and the same batch and channels"));
  }
  Pooling pooling;
  pooling.planes = x[0] * x[1];
  pooling.count_padding = spec.attributes.Int("count_include_pad", 0) != 0;
  pooling.column_major = spec.attributes.Int("storage_order", 0) != 0;
  pooling.p = spec.attributes.Int("p", 2);
  return pooling;
}

}  // namespace

int64_t Pooling::Counted(const WindowAxis& axis, int64_t start) const {
  if (!count_padding) return std::max<int64_t>(axis.EndTap(start) - axis.FirstTap(start), 0);
  return std::min(axis.kernel, (axis.in + axis.after - start + axis.dilation - 1) / axis.dilation);
}

absl::StatusOr<Pooling> ReadPooling(const KernelSpec& spec, const Shape& x, const Shape& y) {
  ASSIGN_OR_RETURN(Pooling pooling, ReadPlanes(spec, x, y));
  const std::vector<int64_t> kernel = spec.attributes.Ints("kernel_shape");
  ASSIGN_OR_RETURN(pooling.windows,
                   ReadWindows(spec, absl::MakeSpan(x).subspan(2), absl::MakeSpan(y).subspan(2), kernel,
                               spec.attributes.Int("ceil_mode", 0) != 0));
  return pooling;
}

absl::StatusOr<Pooling> ReadPooling(const KernelSpec& spec, bool global) {
  const Shape &x = spec.inputs[0].type.shape, &y = spec.outputs[0].type.shape;
  if (!global) return ReadPooling(spec, x, y);
  ASSIGN_OR_RETURN(Pooling pooling, ReadPlanes(spec, x, y));
  const int64_t places = NumElements(absl::MakeSpan(x).subspan(2));
  if (places == 0) return Invalid(spec, absl::StrCat("X is ", ToString(x), ": there is nothing to pool"));
  if (NumElements(absl::MakeSpan(y).subspan(2)) != 1)
    return Invalid(spec, absl::StrCat("Y is ", ToString(y), ", wanted one place a channel"));
  pooling.windows.rank = 1;
  pooling.windows.axes[2].in = pooling.windows.axes[2].kernel = places;
  return pooling;
}

}  // namespace pipec
