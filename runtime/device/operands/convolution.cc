#include "runtime/device/operands/convolution.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<Convolution> ReadConvolution(const KernelSpec &spec, const Shape &x, const Shape &w,
                                            const Shape &y, bool transposed) {
  const auto wrong = [&](absl::string_view why) {
    return Invalid(spec,
                   absl::StrCat("X is ", ToString(x), ", W ", ToString(w), ", Y ", ToString(y), ": ", why));
  };
  if (x.size() < 3 || w.size() != x.size() || y.size() != x.size())
    return wrong("wanted equal ranks of 3 or more");
  const int64_t groups = spec.attributes.Int("group", 1);
  if (groups < 1 || x[1] % groups != 0 || w[0] % groups != 0) {
    return wrong(absl::StrCat("the channels do not divide into ", groups, " groups"));
  }
  Convolution c;
  c.batch = x[0];
  c.groups = groups;
  c.x_channels = x[1] / groups;
  c.y_channels = transposed ? w[1] : w[0] / groups;
  if ((transposed ? w[0] : w[1] * groups) != x[1]) return wrong("W has other input channels than X");
  if (y[0] != x[0] || y[1] != c.y_channels * groups) return wrong("Y has another batch or other channels");
  const auto kernel = absl::MakeSpan(w).subspan(2);
  if (const auto stated = spec.attributes.Ints("kernel_shape");
      !stated.empty() && absl::MakeSpan(stated) != kernel) {
    return wrong(absl::StrCat("kernel_shape is ", ToString(stated)));
  }
  const auto x_places = absl::MakeSpan(x).subspan(2), y_places = absl::MakeSpan(y).subspan(2);
  if (transposed) {
    ASSIGN_OR_RETURN(c.windows, ReadTransposedWindows(spec, y_places, x_places, kernel));
  } else {
    ASSIGN_OR_RETURN(c.windows, ReadWindows(spec, x_places, y_places, kernel,
                                            /*ceil_mode=*/false));
  }
  return c;
}

}  // namespace pipec
