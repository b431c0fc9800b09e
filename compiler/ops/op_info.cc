#include "compiler/ops/op_info.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "compiler/ir/sums.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/batch_rules.h"
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
#define ADDS(domain, op) {domain, op},
constexpr OpKey kAdding[] = {
#include "runtime/device/ops.def"
};

}  // namespace

absl::Span<const OpInfo> AllOps() {
  static const std::vector<OpInfo>* const kOps = [] {
    auto* ops = new std::vector<OpInfo>;
    for (absl::Span<const OpInfo> family :
         {ElementwiseOps(), MatMulOps(), FusedAttentionOps(), WindowOps(), NormalizationOps(), RecurrentOps(),
          ReductionOps(), ShapeOps(), SelectionOps(), SizedByDataOps(), DropoutOps(), LossOps(), UpdateOps(),
          GradientOps()}) {
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
  if (Accumulates(node)) return Alias::kSameMemory;
  const OpInfo* info = FindOp(node.op(), node.domain());
  return info ? info->alias : Alias::kNone;
}

int AliasInput(const Node& node, int k) {
  if (Accumulates(node)) return OwnOperands(node) + k;
  const OpInfo& info = *FindOp(node.op(), node.domain());
  return info.alias == Alias::kSameMemory && k > 0 ? info.alias_input + k + 1 : info.alias_input;
}

bool CanAccumulate(absl::string_view op, absl::string_view domain) {
  return absl::c_linear_search(kAdding, OpKey(domain, op));
}

int BatchAxisOf(const Node& node, int k) {
  const OpInfo* info = FindOp(node.op(), node.domain());
  const Value* first = node.output(0);
  const Value* output = node.output(k);
  if (!output) return -1;
  if (!info || !info->batch_axis) {
    const BatchRule* rule = node.domain().empty() ? FindBatchRule(node.op()) : nullptr;
    if (rule) return rule->axis(node, k);
  }
  if (!info || !first) return -1;
  const int axis = info->batch_axis ? info->batch_axis(node) : BroadcastBatchAxis(node);
  if (k == 0 || axis < 0) return axis;
  const bool has_it = axis < static_cast<int>(output->type.shape.size()) &&
                      output->type.shape[axis] == first->type.shape[axis];
  return has_it ? axis : -1;
}

bool SetBatchAxes(Node& node) {
  const int64_t samples = std::max<int64_t>(SamplesOf(node.graph()), 1);
  bool changed = false;
  for (size_t k = 0; k < node.outputs().size(); ++k) {
    Value* output = node.outputs()[k];
    if (!output) continue;
    int axis = BatchAxisOf(node, k);
    const bool whole = axis >= 0 && axis < static_cast<int>(output->type.shape.size()) &&
                       output->type.shape[axis] % samples == 0;
    if (!whole) axis = -1;
    changed |= axis != output->batch_axis;
    output->batch_axis = axis;
  }
  return changed;
}

bool IsBroadcast(absl::string_view op, absl::string_view domain) {
  if (op == "Expand") return false;  // operand 1 is a shape
  const OpInfo* info = FindOp(op, domain);
  const BatchRule* rule = domain.empty() ? FindBatchRule(op) : nullptr;
  if (info && info->batch_axis) return false;
  return rule ? rule->axis == ElementwiseBatchRule : info != nullptr;
}

bool HasKernel(absl::string_view device, absl::string_view op, absl::string_view domain) {
  for (const KernelRow& row : kKernels) {
    if (row.op == op && row.domain == domain) return device == "cuda" ? row.cuda : device == "cpu" && row.cpu;
  }
  return false;
}

}  // namespace pipec
