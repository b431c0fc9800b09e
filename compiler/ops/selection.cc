// Ops that pick or put together parts of tensors.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ir/sums.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// The rows that are picked are read and written; the rest of the data is not touched.
NodeCost GatherCost(const Node& node) {
  return {0, 2.0 * node.output(0)->type.bytes() + node.input(1)->type.bytes()};
}

// The result is read and written; what lies outside the slice is not touched.
NodeCost SliceCost(const Node& node) { return {0, 2.0 * node.output(0)->type.bytes()}; }

int GatherBatchAxis(const Node& node) {
  const Value *data = node.input(0), *indices = node.input(1);
  const int64_t axis = NormalizeAxis(node.attributes.Int("axis", 0), data->type.shape.size());
  int from_data = -1, from_indices = -1;
  if (data->batch_axis == axis) return -1;
  if (data->batch_axis >= 0) {
    from_data =
        data->batch_axis + (data->batch_axis > axis ? static_cast<int>(indices->type.shape.size()) - 1 : 0);
  }
  if (indices->batch_axis >= 0) from_indices = axis + indices->batch_axis;
  if (from_data >= 0 && from_indices >= 0) return -1;  // every sample's indices into every sample's data
  return std::max(from_data, from_indices);
}

int SliceBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  if (axis < 0) return -1;
  // Kept if the slice takes all of it, and not backwards.
  if (node.output(0)->type.shape[axis] != node.input(0)->type.shape[axis]) return -1;
  if (!node.input(4)) return axis;
  auto axes = ConstantInts(node.input(3)), steps = ConstantInts(node.input(4));
  if (!steps || (node.input(3) && !axes)) return -1;
  for (size_t i = 0; i < steps->size(); ++i) {
    const int64_t a = axes ? NormalizeAxis((*axes)[i], node.input(0)->type.shape.size()) : i;
    if (a == axis && (*steps)[i] < 0) return -1;
  }
  return axis;
}

// Kept if nothing was added along it.
int UnchangedBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  return axis >= 0 && node.output(0)->type.shape[axis] == node.input(0)->type.shape[axis] ? axis : -1;
}

// (data, pads, value?, axes?): kept if nothing is added to or cut from it.
int PadBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  const auto pads = ConstantInts(node.input(1)), axes = ConstantInts(node.input(3));
  if (axis < 0 || !pads || (node.input(3) && !axes)) return -1;
  const int64_t rank = node.input(0)->type.shape.size(), count = pads->size() / 2;
  for (int64_t i = 0; i < count; ++i) {
    if ((axes ? NormalizeAxis((*axes)[i], rank) : i) != axis) continue;
    if ((*pads)[i] != 0 || (*pads)[count + i] != 0) return -1;
  }
  return axis;
}

int ConcatBatchAxis(const Node& node) {
  int result = -1;
  for (const Value* in : node.inputs()) {
    if (!in || in->batch_axis < 0) continue;
    if (result >= 0 && result != in->batch_axis) return -1;
    result = in->batch_axis;
  }
  return result == NormalizeAxis(node.attributes.Int("axis"), node.output(0)->type.shape.size()) ? -1
                                                                                                 : result;
}

int SplitBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  return axis == NormalizeAxis(node.attributes.Int("axis", 0), node.input(0)->type.shape.size()) ? -1 : axis;
}

// The classes are a new axis of the result; their number and the two values are the same for all samples.
int OneHotBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  if (axis < 0 || SameBatchAxis(node, 1) >= 0 || SameBatchAxis(node, 2) >= 0) return -1;
  return axis < NormalizeAxis(node.attributes.Int("axis", -1), node.output(0)->type.shape.size()) ? axis
                                                                                                  : axis + 1;
}

// (dY, indices) -> (dData): dY has data's shape with `axis` replaced by the shape of indices.
// Added to a sum, it touches the places that are named only; else it clears the others.
NodeCost GatherGradCost(const Node& node) {
  const Value& dy = *node.input(0);
  const auto bytes = static_cast<double>(dy.type.bytes());
  return {static_cast<double>(Elements(&dy)),
          Accumulates(node) ? 3 * bytes + static_cast<double>(node.input(1)->type.bytes()) : BytesOf(node)};
}

InferredTypes InferGatherGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 2));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  const TensorType &dy = TypeOf(spec, 0), &indices = TypeOf(spec, 1);
  if (indices.dtype != DType::kInt64 && indices.dtype != DType::kInt32) {
    return BadOperands(spec, "indices must be int64 or int32");
  }
  ASSIGN_OR_RETURN(Shape shape, ShapeAttribute(spec));
  const int64_t rank = shape.size(), axis = NormalizeAxis(spec.attributes.Int("axis", 0), rank);
  if (axis < 0 || axis >= rank)
    return BadOperands(spec, absl::StrCat("axis is not within shape ", ToString(shape)));
  Shape wanted(shape.begin(), shape.begin() + axis);
  wanted.insert(wanted.end(), indices.shape.begin(), indices.shape.end());
  wanted.insert(wanted.end(), shape.begin() + axis + 1, shape.end());
  if (dy.shape != wanted) return BadOperands(spec, absl::StrCat("dY must have shape ", ToString(wanted)));
  return std::vector<TensorType>{{dy.dtype, shape}};
}

// (dY) -> (dX): dY has shape[axes[i]] places at starts[i], starts[i] + steps[i], ...
InferredTypes InferSliceGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 1, 1));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  const TensorType& dy = TypeOf(spec, 0);
  ASSIGN_OR_RETURN(Shape shape, ShapeAttribute(spec));
  const std::vector<int64_t> starts = spec.attributes.Ints("starts"), axes = spec.attributes.Ints("axes"),
                             steps = spec.attributes.Ints("steps");
  if (starts.size() != axes.size() || steps.size() != axes.size()) {
    return BadOperands(spec, "starts, axes and steps must be equally long");
  }
  if (dy.shape.size() != shape.size()) {
    return BadOperands(spec, absl::StrCat("dY must have the rank of shape ", ToString(shape)));
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    auto sliced = std::find(axes.begin(), axes.end(), i);
    if (sliced == axes.end()) {
      if (dy.shape[i] != shape[i])
        return BadOperands(spec, absl::StrCat("axis ", i, " is not sliced but differs"));
      continue;
    }
    const size_t k = sliced - axes.begin();
    const int64_t last = starts[k] + (dy.shape[i] - 1) * steps[k];
    const bool inside = starts[k] >= 0 && starts[k] < shape[i] && last >= 0 && last < shape[i];
    if (dy.shape[i] > 0 && (!inside || steps[k] == 0)) {
      return BadOperands(spec, absl::StrCat("the slice of axis ", i, " leaves shape ", ToString(shape)));
    }
  }
  return std::vector<TensorType>{{dy.dtype, shape}};
}

const OpInfo kRows[] = {
    {"Gather", "", GatherCost, GatherBatchAxis},
    {"Slice", "", SliceCost, SliceBatchAxis},
    {"Concat", "", nullptr, ConcatBatchAxis},
    {"Split", "", nullptr, SplitBatchAxis},
    {"Pad", "", nullptr, PadBatchAxis},
    {"Tile", "", nullptr, UnchangedBatchAxis},
    {"OneHot", "", nullptr, OneHotBatchAxis},
    {"GatherGrad", kPipecDomain, GatherGradCost, NoBatchAxis, Alias::kNone, 0, InferGatherGrad},
    {"SliceGrad", kPipecDomain, nullptr, NoBatchAxis, Alias::kNone, 0, InferSliceGrad},
};

}  // namespace

absl::Span<const OpInfo> SelectionOps() { return kRows; }

}  // namespace pipec
