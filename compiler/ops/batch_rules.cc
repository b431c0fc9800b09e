// Element-wise ops, normalizations and reductions; and the index over all families.
#include "compiler/ops/batch_rules.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "compiler/ops/batch_axes.h"

namespace pipec {
namespace {

int Same(const Node& node, int) { return SameBatchAxis(node); }
int None(const Node&, int) { return -1; }
int Reduction(const Node& node, int) { return ReduceBatchAxis(node); }

// Normalises, or looks for the largest, along one axis.
int AlongAxis(const Node& node, int) { return BatchAxisBeside(node, node.attributes.Int("axis", -1)); }

int AfterAxis(const Node& node, int k) {
  const int axis = SameBatchAxis(node);
  const int64_t rank = node.input(0)->type.shape.size();
  if (axis >= NormalizeAxis(node.attributes.Int("axis", -1), rank)) return -1;
  return axis < static_cast<int>(node.output(k)->type.shape.size()) ? axis : -1;
}

// Along the axis in operand 1.
int Cumulative(const Node& node, int) {
  auto along = ConstantInts(node.input(1));
  return along && along->size() == 1 ? BatchAxisBeside(node, along->front()) : -1;
}

// Statistics over these axes, by default all but the channels.
int MeanVariance(const Node& node, int) {
  const int axis = SameBatchAxis(node);
  std::vector<int64_t> axes = node.attributes.Ints("axes");
  if (axes.empty()) axes = {0, 2, 3};
  const int64_t rank = node.input(0)->type.shape.size();
  for (int64_t a : axes) {
    if (NormalizeAxis(a, rank) == axis) return -1;
  }
  return axis;
}

// Statistics of each sample by itself; scale and bias belong to the channels.
int BySample(const Node& node, int) { return LeadingBatchAxis(node, {0}); }

// In training the statistics are the microbatch's, as in GPipe: the samples stay where they are.
int BatchNormalization(const Node& node, int k) { return k == 0 ? LeadingBatchAxis(node, {0}) : -1; }

// Across channels, within a sample.
int LocalResponse(const Node& node, int) {
  const int axis = SameBatchAxis(node);
  return axis == 1 ? -1 : axis;
}

// (loss, log_prob): a loss that is not reduced has the labels' shape.
int ClassLoss(const Node& node, int k) {
  if (k == 1) return SameBatchAxis(node);
  return node.attributes.String("reduction", "mean") == "none" ? SameBatchAxis(node, 1) : -1;
}

// The matrices are the last two axes.
int Determinant(const Node& node, int) {
  const int axis = SameBatchAxis(node);
  return axis + 2 < static_cast<int>(node.input(0)->type.shape.size()) ? axis : -1;
}

constexpr absl::string_view kElementwise[] = {
    "Acos",       "Acosh",     "Asin",       "Asinh",    "Atan",   "Atanh", "BitShift", "BitwiseAnd",
    "BitwiseNot", "BitwiseOr", "BitwiseXor", "Celu",     "Clip",   "Cosh",  "Elu",      "HardSigmoid",
    "HardSwish",  "IsInf",     "LeakyRelu",  "Mean",     "Mish",   "PRelu", "Round",    "Selu",
    "Shrink",     "Sinh",      "Softplus",   "Softsign", "SwiGLU", "Swish", "Tan",      "ThresholdedRelu"};

// Operand 0 is what counts; the others are scales, or say of which type the result is.
constexpr absl::string_view kOfOperand0[] = {"BitCast",           "CastLike",   "DequantizeLinear",
                                             "QuantizeLinear",    "Bernoulli",  "RandomNormalLike",
                                             "RandomUniformLike", "Multinomial"};

constexpr absl::string_view kWithoutBatch[] = {
    "BlackmanWindow", "DynamicQuantizeLinear", "EyeLike", "HammingWindow",
    "HannWindow",     "MelWeightMatrix",       "NonZero", "NonMaxSuppression",
    "RandomNormal",   "RandomUniform",         "Unique"};

const BatchRule kRules[] = {
    {"Hardmax", AlongAxis},
    {"LpNormalization", AlongAxis},
    {"LayerNormalization", AfterAxis},
    {"RMSNormalization", AfterAxis},
    {"MeanVarianceNormalization", MeanVariance},
    {"InstanceNormalization", BySample},
    {"GroupNormalization", BySample},
    {"BatchNormalization", BatchNormalization},
    {"LRN", LocalResponse},
    {"CumProd", Cumulative},
    {"ReduceL1", Reduction},
    {"ReduceL2", Reduction},
    {"ReduceLogSum", Reduction},
    {"ReduceLogSumExp", Reduction},
    {"SoftmaxCrossEntropyLoss", ClassLoss},
    {"NegativeLogLikelihoodLoss", ClassLoss},
    {"Det", Determinant},
};

}  // namespace

int ElementwiseBatchRule(const Node& node, int) { return BroadcastBatchAxis(node); }

const BatchRule* FindBatchRule(absl::string_view op) {
  static const auto* const kIndex = [] {
    auto* index = new absl::flat_hash_map<absl::string_view, BatchRule>;
    for (absl::string_view name : kElementwise) (*index)[name] = {name, ElementwiseBatchRule};
    for (absl::string_view name : kOfOperand0) (*index)[name] = {name, Same};
    for (absl::string_view name : kWithoutBatch) (*index)[name] = {name, None};
    for (absl::Span<const BatchRule> family :
         {absl::MakeConstSpan(kRules), ProductBatchRules(), SpatialBatchRules(), SequenceBatchRules(),
          IndexBatchRules()}) {
      for (const BatchRule& rule : family) (*index)[rule.op] = rule;
    }
    return index;
  }();
  auto it = kIndex->find(op);
  return it == kIndex->end() ? nullptr : &it->second;
}

}  // namespace pipec
