#include "compiler/ops/op_info.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"

namespace pipec {
namespace {

using OpKey = std::pair<absl::string_view, absl::string_view>;

struct KernelRow {
  absl::string_view domain, op;
  bool cpu, cuda;
};

#define OP(domain, op, cpu, cuda) {domain, op, (cpu) != 0, (cuda) != 0},
constexpr KernelRow kKernels[] = {
#include "runtime/device/ops.def"
    {"", "", false, false},
};
#undef OP

}  // namespace

absl::Span<const OpInfo> AllOps() {
  static const std::vector<OpInfo>* const kOps = [] {
    auto* ops = new std::vector<OpInfo>;
    for (absl::Span<const OpInfo> family :
         {ElementwiseOps(), MatMulOps(), NormalizationOps(), ReductionOps(), ShapeOps(), SelectionOps(),
          DropoutOps(), LossOps(), UpdateOps()}) {
      ops->insert(ops->end(), family.begin(), family.end());
    }
    return ops;
  }();
  return *kOps;
}

const OpInfo* FindOp(absl::string_view op, absl::string_view domain) {
  static const auto* const kIndex = [] {
    auto* index = new absl::flat_hash_map<OpKey, const OpInfo*>;
    for (const OpInfo& info : AllOps()) index->emplace(OpKey(info.op, info.domain), &info);
    return index;
  }();
  auto it = kIndex->find(OpKey(op, domain));
  return it == kIndex->end() ? nullptr : it->second;
}

NodeCost CostOf(const Node& node) {
  const OpInfo* info = FindOp(node.op(), node.domain());
  if (info && info->alias == Alias::kView) return {};
  return info && info->cost ? info->cost(node) : NodeCost{0, BytesOf(node)};
}

Alias AliasOf(const Node& node) {
  const OpInfo* info = FindOp(node.op(), node.domain());
  return info ? info->alias : Alias::kNone;
}

int AliasInput(const OpInfo& info, int k) {
  return info.alias == Alias::kSameMemory && k > 0 ? info.alias_input + k + 1 : info.alias_input;
}

int BatchAxisOf(const Node& node, int k) {
  const OpInfo* info = FindOp(node.op(), node.domain());
  const Value* first = node.output(0);
  const Value* output = node.output(k);
  if (!info || !first || !output) return -1;
  const int axis = info->batch_axis ? info->batch_axis(node) : BroadcastBatchAxis(node);
  if (k == 0 || axis < 0) return axis;
  const bool has_it = axis < static_cast<int>(output->type.shape.size()) &&
                      output->type.shape[axis] == first->type.shape[axis];
  return has_it ? axis : -1;
}

bool HasKernel(absl::string_view device, absl::string_view op, absl::string_view domain) {
  for (const KernelRow& row : kKernels) {
    if (row.op == op && row.domain == domain) return device == "cuda" ? row.cuda : device == "cpu" && row.cpu;
  }
  return false;
}

}  // namespace pipec
