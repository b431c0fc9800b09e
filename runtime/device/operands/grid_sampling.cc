#include "runtime/device/operands/grid_sampling.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<GridSampling> GridSampling::Of(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType &x = spec.inputs[0].type, &grid = spec.inputs[1].type;
  const int rank = static_cast<int>(x.shape.size()) - 2;
  if (rank > kGridAxes) {
    return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (GridSample): ", rank,
                                                 " spatial axes, at most ", kGridAxes, " are sampled"));
  }
  if (rank < 1 || grid.shape.size() != x.shape.size() || grid.shape[0] != x.shape[0] ||
      grid.shape.back() != rank || NumElements(absl::MakeSpan(x.shape).subspan(2)) == 0) {
    return Invalid(spec, absl::StrCat("X is ", ToString(x), ", grid ", ToString(grid),
                                      ": wanted a grid of a coordinate for each "
                                      "spatial axis, and places in X"));
  }
  RETURN_IF_ERROR(CheckInputType(spec, 1, x.dtype));
  GridSampling s;
  s.rank = rank;
  s.dims.fill(1);
  for (int i = 0; i < rank; ++i) s.dims[kGridAxes - rank + i] = x.shape[2 + i];
  s.batch = x.shape[0], s.channels = x.shape[1];
  Shape y = {s.batch, s.channels};
  for (int i = 0; i < rank; ++i) y.push_back(grid.shape[1 + i]), s.places *= grid.shape[1 + i];
  const std::string mode = spec.attributes.String("mode", "linear"),
                    padding = spec.attributes.String("padding_mode", "zeros");
  if (mode != "linear" && mode != "nearest" && mode != "cubic")
    return Invalid(spec, absl::StrCat("mode is ", mode));
  if (padding != "zeros" && padding != "border" && padding != "reflection") {
    return Invalid(spec, absl::StrCat("padding_mode is ", padding));
  }
  s.mode = mode == "linear" ? GridMode::kLinear : mode == "nearest" ? GridMode::kNearest : GridMode::kCubic;
  s.padding = padding == "zeros"    ? GridPadding::kZeros
              : padding == "border" ? GridPadding::kBorder
                                    : GridPadding::kReflection;
  s.align_corners = spec.attributes.Int("align_corners", 0) != 0;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y}));
  return s;
}

}  // namespace pipec
