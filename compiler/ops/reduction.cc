// Reductions over axes.
#include <algorithm>

#include "compiler/ops/batch_axes.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"

namespace pipec {
namespace {

// The batch axis after the axes in `reduced` (counted from the front) are gone or have become 1.
int AfterReduction(int axis, const std::vector<int64_t>& reduced, bool keepdims) {
  if (axis < 0 || std::find(reduced.begin(), reduced.end(), axis) != reduced.end()) return -1;
  if (keepdims) return axis;
  return axis - std::count_if(reduced.begin(), reduced.end(), [axis](int64_t r) { return r < axis; });
}

int ArgBatchAxis(const Node& node) {
  const int64_t axis = NormalizeAxis(node.attributes.Int("axis", 0), node.input(0)->type.shape.size());
  return AfterReduction(SameBatchAxis(node), {axis}, node.attributes.Int("keepdims", 1) != 0);
}

// Sums along the axis in operand 1.
int CumSumBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  auto summed = ConstantInts(node.input(1));
  if (!summed || summed->size() != 1) return -1;
  return axis == NormalizeAxis(summed->front(), node.input(0)->type.shape.size()) ? -1 : axis;
}

const OpInfo kRows[] = {
    {"ReduceSum", "", PerInputElement<1>, ReduceBatchAxis},
    {"ReduceMean", "", PerInputElement<1>, ReduceBatchAxis},
    {"ReduceMax", "", PerInputElement<1>, ReduceBatchAxis},
    {"ReduceMin", "", PerInputElement<1>, ReduceBatchAxis},
    {"ReduceProd", "", PerInputElement<1>, ReduceBatchAxis},
    {"ReduceSumSquare", "", PerInputElement<2>, ReduceBatchAxis},
    {"ArgMax", "", PerInputElement<1>, ArgBatchAxis},
    {"ArgMin", "", PerInputElement<1>, ArgBatchAxis},
    {"CumSum", "", PerInputElement<1>, CumSumBatchAxis},
};

}  // namespace

// Axes come as operand 1; absent or empty they mean all, or none with noop_with_empty_axes.
int ReduceBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  if (axis < 0) return -1;
  std::vector<int64_t> axes;
  if (node.input(1)) {
    auto constant = ConstantInts(node.input(1));
    if (!constant) return -1;
    axes = *constant;
  }
  if (axes.empty()) return node.attributes.Int("noop_with_empty_axes") ? axis : -1;
  for (int64_t& a : axes) a = NormalizeAxis(a, node.input(0)->type.shape.size());
  return AfterReduction(axis, axes, node.attributes.Int("keepdims", 1) != 0);
}

absl::Span<const OpInfo> ReductionOps() { return kRows; }

}  // namespace pipec
