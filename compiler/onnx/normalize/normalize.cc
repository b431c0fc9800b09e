#include "compiler/onnx/normalize/normalize.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/onnx/normalize/rules.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kAnyOpset = std::numeric_limits<int>::max();

const NormalizeRule kRules[] = {
    {"Concat", 4, OldConcat},
    {"Reshape", 5, OldReshape},
    {"Cast", 6, OldCast},
    {"Gemm", 7, OldGemm},
    {"Add", 7, OldBroadcast},
    {"Sub", 7, OldBroadcast},
    {"Mul", 7, OldBroadcast},
    {"Div", 7, OldBroadcast},
    {"Pow", 7, OldBroadcast},
    {"And", 7, OldBroadcast},
    {"Or", 7, OldBroadcast},
    {"Xor", 7, OldBroadcast},
    {"Equal", 7, OldBroadcast},
    {"Greater", 7, OldBroadcast},
    {"Less", 7, OldBroadcast},
    {"PRelu", 7, OldPRelu},
    {"RNN", 7, OldRecurrent},
    {"GRU", 7, OldRecurrent},
    {"LSTM", 7, OldRecurrent},
    {"Slice", 10, OldSlice},
    {"TopK", 10, OldTopK},
    {"Upsample", 10, OldUpsample},
    {"Resize", 11, OldResize},
    {"Scatter", 11, OldScatter},
    {"Clip", 11, OldClip},
    {"Pad", 11, OldPad},
    {"Dropout", 12, OldDropout},
    {"Softmax", 13, OldSoftmax},
    {"LogSoftmax", 13, OldSoftmax},
    {"Hardmax", 13, OldSoftmax},
    {"Squeeze", 13, OldSqueeze},
    {"Unsqueeze", 13, OldSqueeze},
    {"ReduceSum", 13, OldReduction},
    {"Split", 13, OldSplit},
    {"BatchNormalization", 14, OldBatchNormalization},
    {"RoiAlign", 16, OldRoiAlign},
    {"ReduceMean", 18, OldReduction},
    {"ReduceMax", 18, OldReduction},
    {"ReduceMin", 18, OldReduction},
    {"ReduceProd", 18, OldReduction},
    {"ReduceL1", 18, OldReduction},
    {"ReduceL2", 18, OldReduction},
    {"ReduceLogSum", 18, OldReduction},
    {"ReduceLogSumExp", 18, OldReduction},
    {"ReduceSumSquare", 18, OldReduction},
    {"Split", 18, EqualSplit},
    {"DFT", 20, OldDft},
    {"GridSample", 20, OldGridSample},
    {"GroupNormalization", 21, OldGroupNormalization},
    {"Resize", kAnyOpset, ResizeOperands},
};

const auto& RulesByOp() {
  static const auto* const kByOp = [] {
    auto* rules = new absl::flat_hash_map<absl::string_view, std::vector<const NormalizeRule*>>();
    for (const NormalizeRule& rule : kRules) (*rules)[rule.op].push_back(&rule);
    return rules;
  }();
  return *kByOp;
}

}  // namespace

absl::Span<const NormalizeRule> NormalizeRules() { return kRules; }

bool HasNewerForm(absl::string_view op, int opset) {
  auto it = RulesByOp().find(op);
  if (it == RulesByOp().end()) return false;
  return std::any_of(it->second.begin(), it->second.end(), [&](const NormalizeRule* rule) {
    return opset < rule->until && rule->until != kAnyOpset;
  });
}

absl::Status NormalizeOpset(PendingNode& node) {
  if (node.opset < 6) node.spec.attributes.Erase("consumed_inputs");
  auto it = RulesByOp().find(node.spec.op);
  if (it == RulesByOp().end()) return absl::OkStatus();
  for (const NormalizeRule* rule : it->second) {
    if (node.opset < rule->until && node.results.empty()) RETURN_IF_ERROR(rule->apply(node));
  }
  return absl::OkStatus();
}

}  // namespace pipec
