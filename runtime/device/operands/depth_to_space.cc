// DepthToSpace and SpaceToDepth (X) -> (Y): blocks of places as channels and back, one copy between two
// views.
// With b the block's side, C the channels of the finer image, (N, C, H, b, W, b) seen as one axis each:
//   depth   (N, b, b, C, H, W), in mode CRD (N, C, b, b, H, W)
//   space   (N, C, H * b, W * b)
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"
#include "runtime/device/operands/move.h"

namespace pipec {
namespace {

// The depth view's strides in the order of the space view's axes, and the six axes themselves.
struct Views {
  Shape space, depth_strides;
};

Views MakeViews(int64_t n, int64_t c, int64_t h, int64_t w, int64_t b, bool channel_first) {
  const int64_t plane = h * w;
  const int64_t column = channel_first ? plane : c * plane, row = b * column;
  return {{n, c, h, b, w, b}, {b * b * c * plane, channel_first ? b * b * plane : plane, w, row, 1, column}};
}

absl::StatusOr<StridedMove> BlockMove(const KernelSpec& spec, bool to_space) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& x = spec.inputs[0].type;
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  const int64_t b = spec.attributes.Int("blocksize");
  const std::string mode = spec.attributes.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return Invalid(spec, absl::StrCat("mode is ", mode));
  if (b < 1 || b > 1 << 15) return Invalid(spec, absl::StrCat("blocksize is ", b));
  const bool fits = x.shape.size() == 4 &&
                    (to_space ? x.shape[1] % (b * b) == 0 : x.shape[2] % b == 0 && x.shape[3] % b == 0);
  if (!fits) return Invalid(spec, absl::StrCat("X is ", ToString(x), ", which has no blocks of side ", b));
  const int64_t n = x.shape[0], c = to_space ? x.shape[1] / (b * b) : x.shape[1];
  const int64_t h = to_space ? x.shape[2] : x.shape[2] / b, w = to_space ? x.shape[3] : x.shape[3] / b;
  const Shape fine = {n, c, h * b, w * b}, deep = {n, c * b * b, h, w};
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, to_space ? fine : deep}));
  const Views views = MakeViews(n, c, h, w, b, to_space && mode == "CRD");
  const Shape space_strides = Strides(views.space);
  return to_space ? StridedMove{views.space, views.depth_strides, space_strides}
                  : StridedMove{views.space, space_strides, views.depth_strides};
}

}  // namespace

absl::StatusOr<StridedMove> DepthToSpaceMove(const KernelSpec& spec) { return BlockMove(spec, true); }
absl::StatusOr<StridedMove> SpaceToDepthMove(const KernelSpec& spec) { return BlockMove(spec, false); }

}  // namespace pipec
