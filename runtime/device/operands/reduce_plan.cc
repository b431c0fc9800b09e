#include "runtime/device/operands/reduce_plan.h"

#include "absl/strings/str_cat.h"

namespace pipec {

absl::StatusOr<ReducePlan> MakeReducePlan(const Shape& operand, absl::Span<const int64_t> axes,
                                          bool keep_dims, bool noop, const Shape& result) {
  const int rank = static_cast<int>(operand.size());
  unsigned gone = axes.empty() && !noop ? ~0u : 0u;
  for (int64_t value : axes) {
    absl::StatusOr<int> axis = NormaliseAxis(value, rank);
    if (!axis.ok()) return axis.status();
    gone |= 1u << *axis;
  }
  ReducePlan plan;
  Shape wanted;
  int64_t stride = NumElements(operand);
  bool last_reduced = false, any = false;
  for (int i = 0; i < rank; ++i) {
    const int64_t size = operand[i];
    const bool reduced = (gone >> i & 1) != 0;
    if (!reduced || keep_dims) wanted.push_back(reduced ? 1 : size);
    (reduced ? plan.reduced_elements : plan.kept_elements) *= size;
    if (size == 1) continue;
    stride = size == 0 ? 0 : stride / size;
    auto& list = reduced ? plan.reduced : plan.kept;
    int& count = reduced ? plan.reduced_rank : plan.kept_rank;
    if (any && reduced == last_reduced) {
      list[count - 1] = {list[count - 1].size * size, stride};
    } else {
      list[count++] = {size, stride};
    }
    any = true;
    last_reduced = reduced;
  }
  plan.inner_reduced = last_reduced;
  if (wanted != result) {
    return absl::InvalidArgumentError(
        absl::StrCat("the reduction gives ", ToString(wanted), ", but output 0 is ", ToString(result)));
  }
  return plan;
}

}  // namespace pipec
