// One helper node each, with its operands.
#include "helper_body_cases.h"

#include <limits>

namespace pipec {
namespace {

using Ints = std::vector<int64_t>;

std::vector<Value*> Helper(SmallModel& m, absl::string_view op, std::vector<Value*> inputs,
                           Attributes::Map attributes = {}, int outputs = 1) {
  return m.Ops(op, std::move(inputs), std::move(attributes), kPipecDomain, outputs);
}

// Random numbers of another type.
constexpr auto kWide = static_cast<int64_t>(DType::kFloat32), kSmall = static_cast<int64_t>(DType::kBFloat16);
Value* As(SmallModel& m, int64_t dtype, std::vector<int64_t> shape) {
  return m.Op("Cast", {m.Random(std::move(shape))}, {{"to", dtype}});
}

Attributes::Map ClassLoss(float smoothing, const char* reduction = "sum") {
  return {{"axis", int64_t{1}},
          {"reduction", std::string(reduction)},
          {"ignore_index", int64_t{1}},
          {"label_smoothing", smoothing},
          {"batch_axis", int64_t{-1}}};
}

}  // namespace

std::vector<HelperCase> HelperCases() {
  using M = SmallModel;
  return {
      {"FusedMatMul",
       [](M& m) {
         return Helper(m, "FusedMatMul", {m.Random({2, 4, 3}), m.Random({2, 5, 4})},
                       {{"trans_a", int64_t{1}}, {"trans_b", int64_t{1}}, {"alpha", -2.0f}});
       }},
      {"FusedMatMul",
       [](M& m) {
         return Helper(m, "FusedMatMul", {m.Random({2, 3, 4}), m.Random({5, 4}), m.Random({5})},
                       {{"trans_b", int64_t{1}}, {"alpha", -2.0f}});
       }},
      {"FusedMatMul",
       [](M& m) {
         return Helper(m, "FusedMatMul", {m.Random({2, 3, 4}), m.Random({4, 5}), m.Random({5})},
                       {{"activation", std::string("GeluTanh")}});
       }},
      {"FusedMatMul",
       [](M& m) {
         return Helper(m, "FusedMatMul", {m.Random({3, 4}), m.Random({5, 4}), nullptr, m.Random({3, 5})},
                       {{"trans_b", int64_t{1}}, {"activation", std::string("GeluTanhGrad")}});
       }},
      {"MatMulWeightGrad",
       [](M& m) {
         return Helper(m, "MatMulWeightGrad", {m.Random({6, 3}), m.Random({6, 4})}, {}, 2);
       }},
      // Windows that lie in the padding alone: behind X, and before it.
      {"MaxPoolGrad",
       [](M& m) {
         return Helper(m, "MaxPoolGrad", {m.Random({1, 2, 2}), m.Ints({1, 2, 2}, {1, 0, 2, 2})},
                       {{"shape", Ints{1, 2, 2}},
                        {"kernel_shape", Ints{2}},
                        {"strides", Ints{2}},
                        {"pads", Ints{0, 2}}});
       }},
      {"MaxPoolGrad",
       [](M& m) {
         return Helper(m, "MaxPoolGrad", {m.Random({1, 1, 2, 1}), m.Ints({1, 1, 2, 1}, {0, 3})},
                       {{"shape", Ints{1, 1, 3, 2}},
                        {"kernel_shape", Ints{2, 2}},
                        {"strides", Ints{2, 2}},
                        {"pads", Ints{2, 0, 0, 0}}});
       }},
      {"MatMulWeightGrad",
       [](M& m) {
         return Helper(m, "MatMulWeightGrad", {m.Random({6, 3}), m.Random({6, 4})}, {{"trans_b", int64_t{1}}},
                       2);
       }},
      {"FusedAttention",
       [](M& m) {
         return Helper(m, "FusedAttention",
                       {m.Random({2, 3, 5, 4}), m.Random({2, 3, 5, 4}), m.Random({2, 3, 5, 2})},
                       {{"scale", 0.7f}, {"causal", int64_t{1}}}, 2);
       }},
      {"FusedAttention",
       [](M& m) {
         return Helper(m, "FusedAttention",
                       {m.Random({2, 3, 4}), m.Random({2, 5, 4}), m.Random({2, 5, 2}), m.Random({3, 1})}, {},
                       2);
       }},
      {"FusedAttention",
       [](M& m) {
         return Helper(m, "FusedAttention",
                       {m.Random({2, 3, 4}), m.Random({2, 2, 4}), m.Random({2, 2, 2}),
                        m.Bools({2, 1, 2}, std::string("\1\0\0\0", 4))},
                       {{"zero_rows", int64_t{1}}});
       }},
      {"FusedAttentionGrad",
       [](M& m) {
         return Helper(m, "FusedAttentionGrad",
                       {m.Random({2, 5, 2}), m.Random({2, 5, 4}), m.Random({2, 5, 4}), m.Random({2, 5, 2}),
                        m.Random({2, 5, 2}), m.Random({2, 5})},
                       {{"scale", 0.7f}, {"causal", int64_t{1}}}, 3);
       }},
      {"FusedAttentionGrad",
       [](M& m) {
         const double infinity = std::numeric_limits<double>::infinity();
         return Helper(m, "FusedAttentionGrad",
                       {m.Random({2, 3, 2}), m.Random({2, 3, 4}), m.Random({2, 2, 4}), m.Random({2, 2, 2}),
                        m.Random({2, 3, 2}), m.Constant({2, 3}, {1, 2, 1, -infinity, -infinity, -infinity}),
                        m.Bools({2, 1, 2}, std::string("\1\0\0\0", 4))},
                       {{"zero_rows", int64_t{1}}}, 3);
       }},
      {"FusedAttentionGrad",
       [](M& m) {
         return Helper(m, "FusedAttentionGrad",
                       {m.Random({2, 3, 2}), m.Random({2, 3, 4}), m.Random({2, 2, 4}), m.Random({2, 2, 2}),
                        m.Random({2, 3, 2}), m.Random({2, 3}), m.Bools({3, 1}, std::string("\1\0\1", 3))},
                       {{"fill", -0.5f}}, 3);
       }},
      {"TanhGrad",
       [](M& m) {
         return Helper(m, "TanhGrad", {m.Random({5}), m.Random({5})});
       }},
      {"SigmoidGrad",
       [](M& m) {
         return Helper(m, "SigmoidGrad", {m.Random({5}), m.Random({5})});
       }},
      {"ReluGrad",
       [](M& m) {
         return Helper(m, "ReluGrad", {m.Random({5}), m.Constant({5}, {1, -1, 0, 2, -3})});
       }},
      {"GeluGrad",
       [](M& m) {
         return Helper(m, "GeluGrad", {m.Random({5}), m.Random({5})}, {{"approximate", std::string("none")}});
       }},
      {"GeluGrad",
       [](M& m) {
         return Helper(m, "GeluGrad", {m.Random({5}), m.Random({5})}, {{"approximate", std::string("tanh")}});
       }},
      {"Dropout",
       [](M& m) {
         return Helper(
             m, "Dropout", {m.Random({6, 33})},
             {{"ratio", 0.3f}, {"key", int64_t{9}}, {"batch_axis", int64_t{0}}, {"samples", int64_t{3}}}, 2);
       }},
      {"Dropout",
       [](M& m) {
         return Helper(m, "Dropout", {m.Random({4, 5, 3})},
                       {{"ratio", 0.5f}, {"key", int64_t{1}}, {"batch_axis", int64_t{1}}});
       }},
      {"DropoutGrad",
       [](M& m) {
         return Helper(m, "DropoutGrad", {m.Random({50})},
                       {{"ratio", 0.9f}, {"key", int64_t{3}}, {"batch_axis", int64_t{-1}}});
       }},
      {"SoftmaxCrossEntropy",
       [](M& m) {
         return Helper(m, "SoftmaxCrossEntropy", {m.Random({4, 5}), m.Ints({4}, {0, 1, 3, 4})},
                       ClassLoss(0.1f), 3);
       }},
      {"SoftmaxCrossEntropy",
       [](M& m) {
         return Helper(m, "SoftmaxCrossEntropy",
                       {m.Random({2, 3, 2}), m.Ints({2, 2}, {0, 1, 2, 0}), m.Constant({3}, {0.5, 1, 2})},
                       ClassLoss(0.2f, "none"), 3);
       }},
      {"SoftmaxCrossEntropyGrad",
       [](M& m) {
         return Helper(m, "SoftmaxCrossEntropyGrad",
                       {m.Constant({}, {2}), m.Random({4, 5}), m.Ints({4}, {0, 1, 3, 4}), m.Random({4})},
                       ClassLoss(0.1f));
       }},
      {"SoftmaxCrossEntropyGrad",
       [](M& m) {
         return Helper(m, "SoftmaxCrossEntropyGrad",
                       {m.Random({2, 2}), m.Random({2, 3, 2}), m.Ints({2, 2}, {0, 1, 2, 0}), m.Random({2, 2}),
                        m.Constant({3}, {0.5, 1, 2})},
                       ClassLoss(0.2f, "none"));
       }},
      {"NegativeLogLikelihood",
       [](M& m) {
         return Helper(m, "NegativeLogLikelihood",
                       {m.Random({3, 4}), m.Ints({3}, {1, 0, 3}), m.Constant({4}, {0.5, 1, 2, 3})},
                       ClassLoss(0), 2);
       }},
      {"NegativeLogLikelihoodGrad",
       [](M& m) {
         Attributes::Map attributes = ClassLoss(0, "none");
         attributes["shape"] = Ints{3, 4};
         return Helper(m, "NegativeLogLikelihoodGrad",
                       {m.Random({3}), m.Ints({3}, {1, 0, 3}), m.Constant({4}, {0.5, 1, 2, 3})}, attributes);
       }},
      {"MeanSquaredError",
       [](M& m) {
         return Helper(m, "MeanSquaredError", {m.Random({3, 4}), m.Random({3, 4})},
                       {{"batch_axis", int64_t{-1}}}, 2);
       }},
      {"MeanSquaredErrorGrad",
       [](M& m) {
         return Helper(m, "MeanSquaredErrorGrad", {m.Constant({}, {3}), m.Random({3, 4}), m.Random({3, 4})});
       }},
      {"BinaryCrossEntropyWithLogits",
       [](M& m) {
         return Helper(m, "BinaryCrossEntropyWithLogits", {m.Random({3, 4}), m.Random({3, 4})},
                       {{"batch_axis", int64_t{-1}}}, 2);
       }},
      {"BinaryCrossEntropyWithLogitsGrad",
       [](M& m) {
         return Helper(m, "BinaryCrossEntropyWithLogitsGrad",
                       {m.Constant({}, {3}), m.Random({3, 4}), m.Random({3, 4})});
       }},
      {"CountCorrect",
       [](M& m) {
         return Helper(m, "CountCorrect", {m.Random({6, 3}), m.Ints({6}, {0, 1, 2, 0, 1, 2})}, ClassLoss(0),
                       2);
       }},
      {"RunningAverage",
       [](M& m) {
         return Helper(m, "RunningAverage", {m.Parameter({3}), m.Random({3})}, {{"momentum", 0.8f}});
       }},
      {"Accumulate",
       [](M& m) {
         return Helper(m, "Accumulate",
                       {m.graph().AddValue(ValueKind::kAccumulator, "sum", {DType::kFloat64, {}}),
                        m.Constant({}, {3})});
       }},
      {"SquaredNorm",
       [](M& m) {
         return Helper(m, "SquaredNorm", {m.Random({3, 4})});
       }},
      {"Pack",
       [](M& m) {
         return Helper(m, "Pack", {m.Constant({}, {3}), m.Constant({}, {4})});
       }},
      {"GradientScale",
       [](M& m) {
         return Helper(
             m, "GradientScale",
             {m.Constant({}, {6}), m.Constant({}, {3}), m.Constant({2}, {1, 4}), m.Constant({}, {2})},
             {{"order", Ints{2, 0}}}, 3);
       }},
      {"GradientScale",
       [](M& m) {
         return Helper(m, "GradientScale", {m.Constant({}, {6}), nullptr, m.Constant({}, {1e-4})},
                       {{"weight", 2.0f}}, 3);
       }},
      {"GradientScale",
       [](M& m) {
         return Helper(m, "GradientScale", {m.Constant({}, {6}), nullptr, m.Constant({}, {1e-4})},
                       {{"weight", 2.0f}, {"divisor", 4.0f}}, 3);
       }},
      {"LossScale",
       [](M& m) {
         return Helper(m, "LossScale", {}, {{"divisor", 4.0f}});
       }},
      {"Sgd",
       [](M& m) {
         return Helper(m, "Sgd", {m.Parameter({4}), m.Random({4}), m.Constant({}, {0.5})},
                       {{"parameter", int64_t{0}}});
       }},
      {"Momentum",
       [](M& m) {
         return Helper(m, "Momentum",
                       {m.Parameter({4}), m.Random({4}), m.Parameter({4}), m.Constant({}, {0.5})},
                       {{"parameter", int64_t{0}}, {"nesterov", int64_t{0}}}, 2);
       }},
      {"Momentum",
       [](M& m) {
         return Helper(m, "Momentum",
                       {m.Parameter({4}), m.Random({4}), m.Parameter({4}), m.Constant({}, {0.5})},
                       {{"parameter", int64_t{0}}, {"nesterov", int64_t{1}}}, 2);
       }},
      {"Adam",
       [](M& m) {
         return Helper(m, "Adam",
                       {m.Parameter({4}), m.Random({4}), m.Parameter({4}), m.Parameter({4}, 0, 1),
                        m.Constant({}, {0.5})},
                       {{"parameter", int64_t{0}}, {"decoupled", int64_t{0}}}, 3);
       }},
      {"Adam",
       [](M& m) {
         return Helper(m, "Adam",
                       {m.Parameter({4}), m.Random({4}), m.Parameter({4}), m.Parameter({4}, 0, 1),
                        m.Constant({}, {0.5})},
                       {{"parameter", int64_t{0}}, {"decoupled", int64_t{1}}}, 3);
       }},
      {"Adagrad",
       [](M& m) {
         return Helper(m, "Adagrad",
                       {m.Parameter({4}), m.Random({4}), m.Parameter({4}, 0, 1), m.Constant({}, {0.5})},
                       {{"parameter", int64_t{0}}}, 2);
       }},
      {"SliceGrad",
       [](M& m) {
         return Helper(
             m, "SliceGrad", {m.Random({3, 2})},
             {{"shape", Ints{6, 5}}, {"starts", Ints{5, 1}}, {"axes", Ints{0, 1}}, {"steps", Ints{-2, 3}}});
       }},
      {"GatherGrad",
       [](M& m) {
         return Helper(m, "GatherGrad", {m.Random({2, 3, 4}), m.Ints({3}, {1, -1, 1})},
                       {{"shape", Ints{2, 5, 4}}, {"axis", int64_t{1}}});
       }},
      {"SoftmaxGrad",
       [](M& m) {
         return Helper(m, "SoftmaxGrad", {m.Random({2, 3, 4}), m.Random({2, 3, 4})}, {{"axis", int64_t{1}}});
       }},
      {"LogSoftmaxGrad",
       [](M& m) {
         return Helper(m, "LogSoftmaxGrad", {m.Random({2, 3, 4}), m.Random({2, 3, 4})},
                       {{"axis", int64_t{-1}}});
       }},
      {"LayerNormalization",
       [](M& m) {
         Value* const y = Helper(m, "LayerNormalization", {As(m, kSmall, {3, 2, 4}), As(m, kWide, {2, 4})},
                                 {{"axis", int64_t{1}}, {"to", kSmall}})[0];
         return m.Ops("Cast", {y}, {{"to", kWide}});
       }},
      {"LayerNormalizationInputGrad",
       [](M& m) {
         return Helper(m, "LayerNormalizationInputGrad",
                       {As(m, kSmall, {3, 2, 4}), As(m, kSmall, {3, 2, 4}), As(m, kWide, {2, 4}),
                        As(m, kWide, {3, 1, 1}), As(m, kWide, {3, 1, 1})},
                       {{"axis", int64_t{1}}, {"to", kWide}});
       }},
      {"SoftmaxCrossEntropyGrad",
       [](M& m) {
         return Helper(m, "SoftmaxCrossEntropyGrad",
                       {As(m, kWide, {}), As(m, kSmall, {3, 4}), m.Ints({3}, {2, 0, 3}), As(m, kWide, {3})},
                       {{"axis", int64_t{1}}, {"to", kWide}});
       }},
      {"LayerNormalizationInputGrad",
       [](M& m) {
         return Helper(m, "LayerNormalizationInputGrad",
                       {m.Random({3, 2, 4}), m.Random({3, 2, 4}), m.Random({2, 4}), m.Random({3, 1, 1}),
                        m.Random({3, 1, 1})},
                       {{"axis", int64_t{1}}});
       }},
      {"LayerNormalizationWeightGrad",
       [](M& m) {
         return Helper(m, "LayerNormalizationWeightGrad",
                       {m.Random({3, 2, 4}), m.Random({3, 2, 4}), m.Random({3, 1, 1}), m.Random({3, 1, 1})},
                       {{"axis", int64_t{1}}}, 2);
       }},
  };
}

}  // namespace pipec
