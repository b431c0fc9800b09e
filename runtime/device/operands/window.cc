#include "runtime/device/operands/window.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/operands/check.h"

namespace pipec {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;  // products of two such numbers do not overflow

// An attribute of `count` integers in [least, kMost); all `otherwise` if it is
// absent.
absl::StatusOr<std::vector<int64_t>> ReadAttribute(const KernelSpec &spec, absl::string_view name,
                                                   size_t count, int64_t otherwise, int64_t least) {
  if (!spec.attributes.Has(name)) return std::vector<int64_t>(count, otherwise);
  const std::vector<int64_t> values = spec.attributes.Ints(name);
  if (values.size() != count) {
    return Invalid(spec, absl::StrCat("attribute ", name, " has ", Counted(values.size(), "value", "values"),
                                      ", wanted ", count));
  }
  for (int64_t value : values) {
    if (value < least || value >= kMost) {
      return Invalid(spec,
                     absl::StrCat("attribute ", name, " has ", value, ", wanted ", least, " to ", kMost - 1));
    }
  }
  return values;
}

// What both directions read alike: kernel, stride, dilation, explicit padding.
absl::StatusOr<Windows> ReadAxes(const KernelSpec &spec, absl::Span<const int64_t> in,
                                 absl::Span<const int64_t> out, absl::Span<const int64_t> kernel) {
  const size_t rank = in.size();
  if (rank > 3) {
    return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, "): ", rank,
                                                 " spatial axes, the cpu device slides over 1 to 3"));
  }
  if (rank == 0 || out.size() != rank || kernel.size() != rank) {
    return Invalid(spec, absl::StrCat("operand, kernel and result have ", rank, ", ", kernel.size(), " and ",
                                      out.size(), " spatial axes, wanted as many of each"));
  }
  ASSIGN_OR_RETURN(const auto strides, ReadAttribute(spec, "strides", rank, 1, 1));
  ASSIGN_OR_RETURN(const auto dilations, ReadAttribute(spec, "dilations", rank, 1, 1));
  ASSIGN_OR_RETURN(const auto pads, ReadAttribute(spec, "pads", 2 * rank, 0, 0));
  Windows windows;
  windows.rank = static_cast<int>(rank);
  for (size_t i = 0; i < rank; ++i) {
    if (kernel[i] < 1 || kernel[i] >= kMost || in[i] >= kMost || out[i] >= kMost) {
      return Invalid(spec, absl::StrCat("a kernel of ", kernel[i], " over ", in[i], " places, wanted 1 to ",
                                        kMost - 1, " of each"));
    }
    windows.axes[3 - rank + i] = {in[i],        out[i],  kernel[i],     strides[i],
                                  dilations[i], pads[i], pads[rank + i]};
  }
  return windows;
}

absl::StatusOr<std::string> ReadAutoPad(const KernelSpec &spec) {
  const std::string mode = spec.attributes.String("auto_pad", "NOTSET");
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER") {
    return Invalid(spec,
                   absl::StrCat("auto_pad is ", mode, ", wanted NOTSET, VALID, SAME_UPPER or SAME_LOWER"));
  }
  return mode;
}

// Shares padding out between both ends; an odd one goes to the end that the
// mode names.
void Share(int64_t padding, bool upper, WindowAxis &axis) {
  axis.before = upper ? padding / 2 : padding - padding / 2;
  axis.after = padding - axis.before;
}

absl::Status WrongCount(const KernelSpec &spec, const WindowAxis &axis, absl::string_view what, int64_t got,
                        int64_t wanted) {
  return Invalid(
      spec, absl::StrCat("a kernel of ", axis.kernel, ", stride ", axis.stride, ", dilation ", axis.dilation,
                         ", padding ", axis.before, " and ", axis.after, " over ", axis.in, " places gives ",
                         wanted, " ", what, ", but output 0 has ", got));
}

}  // namespace

absl::StatusOr<Windows> ReadWindows(const KernelSpec &spec, absl::Span<const int64_t> in,
                                    absl::Span<const int64_t> out, absl::Span<const int64_t> kernel,
                                    bool ceil_mode) {
  ASSIGN_OR_RETURN(Windows windows, ReadAxes(spec, in, out, kernel));
  ASSIGN_OR_RETURN(const std::string mode, ReadAutoPad(spec));
  for (int i = 3 - windows.rank; i < 3; ++i) {
    WindowAxis &axis = windows.axes[i];
    const int64_t reach = (axis.kernel - 1) * axis.dilation + 1;
    if (mode != "NOTSET") axis.before = axis.after = 0;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const int64_t wanted = (axis.in + axis.stride - 1) / axis.stride;
      const int64_t padding = (wanted - 1) * axis.stride + reach - axis.in;
      Share(std::max<int64_t>(padding, 0), mode == "SAME_UPPER", axis);
      if (axis.out != wanted) return WrongCount(spec, axis, "windows", axis.out, wanted);
      continue;
    }
    const int64_t room = axis.in + axis.before + axis.after - reach;
    if (room < 0) {
      return Invalid(spec, absl::StrCat("a kernel that reaches over ", reach, " places does not fit into ",
                                        axis.in, " with padding ", axis.before, " and ", axis.after));
    }
    const int64_t wanted = room / axis.stride + 1;
    // Only a window that begins inside the operand or in the padding before it
    // is one more.
    const bool more = ceil_mode && room % axis.stride != 0 && wanted * axis.stride < axis.in + axis.before;
    if (axis.out != wanted + (more ? 1 : 0)) {
      return WrongCount(spec, axis, "windows", axis.out, wanted + (more ? 1 : 0));
    }
  }
  return windows;
}

absl::StatusOr<Windows> ReadTransposedWindows(const KernelSpec &spec, absl::Span<const int64_t> in,
                                              absl::Span<const int64_t> out,
                                              absl::Span<const int64_t> kernel) {
  ASSIGN_OR_RETURN(Windows windows, ReadAxes(spec, in, out, kernel));
  ASSIGN_OR_RETURN(const std::string mode, ReadAutoPad(spec));
  const size_t rank = in.size();
  ASSIGN_OR_RETURN(const auto extra, ReadAttribute(spec, "output_padding", rank, 0, 0));
  ASSIGN_OR_RETURN(const auto shape, ReadAttribute(spec, "output_shape", rank, -1, 0));
  for (size_t i = 0; i < rank; ++i) {
    WindowAxis &axis = windows.axes[3 - rank + i];
    if (axis.out < 1) return Invalid(spec, "the operand has no places");
    const int64_t full = (axis.out - 1) * axis.stride + extra[i] + (axis.kernel - 1) * axis.dilation + 1;
    if (mode == "VALID") axis.before = axis.after = 0;
    int64_t wanted = full - axis.before - axis.after;
    if (shape[i] >= 0) {
      // Places that no window reaches are at the end.
      wanted = shape[i];
      Share(std::max<int64_t>(full - wanted, 0), mode == "SAME_UPPER", axis);
    } else if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      wanted = axis.out * axis.stride;
      Share(std::max<int64_t>(full - wanted, 0), mode == "SAME_UPPER", axis);
    }
    if (axis.in != wanted) return WrongCount(spec, axis, "places", axis.in, wanted);
  }
  return windows;
}

}  // namespace pipec
