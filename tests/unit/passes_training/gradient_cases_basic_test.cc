// The cases of the commonest ops, and the list of all.
#include "gradient_cases.h"

namespace pipec {
namespace {

using Ints = std::vector<int64_t>;

const std::vector<GradientCase>* MakeCases() {
  using M = SmallModel;
  auto* const all = new std::vector<GradientCase>{
      {"MatMul", "", "matrices", [](M& m) { return m.Ops("MatMul", {m.Parameter({3, 4}), m.Parameter({4, 2})}); }},
      {"MatMul", "", "weight", [](M& m) { return m.Ops("MatMul", {m.Parameter({2, 3, 4}), m.Parameter({4, 5})}); }},
      {"MatMul", "", "batched", [](M& m) { return m.Ops("MatMul", {m.Parameter({2, 3, 4}), m.Parameter({2, 4, 2})}); }},
      {"MatMul", "", "broadcast",
       [](M& m) { return m.Ops("MatMul", {m.Parameter({2, 1, 3, 4}), m.Parameter({5, 4, 2})}); }},
      {"MatMul", "", "left_matrix",
       [](M& m) { return m.Ops("MatMul", {m.Parameter({3, 4}), m.Parameter({2, 4, 2})}); }},
      {"MatMul", "", "vectors", [](M& m) { return m.Ops("MatMul", {m.Parameter({4}), m.Parameter({4})}); }},
      {"MatMul", "", "left_vector", [](M& m) { return m.Ops("MatMul", {m.Parameter({4}), m.Parameter({2, 4, 3})}); }},
      {"MatMul", "", "right_vector", [](M& m) { return m.Ops("MatMul", {m.Parameter({2, 3, 4}), m.Parameter({4})}); }},
      {"FusedMatMul", kPipecDomain, "b_transposed",
       [](M& m) {
         return m.Ops("FusedMatMul", {m.Parameter({2, 3, 4}), m.Parameter({5, 4})},
                      {{"trans_b", int64_t{1}}, {"alpha", 0.5f}},
                      kPipecDomain);
       }},
      {"FusedMatMul", kPipecDomain, "a_transposed",
       [](M& m) {
         return m.Ops("FusedMatMul", {m.Parameter({2, 4, 3}), m.Parameter({4, 5})}, {{"trans_a", int64_t{1}}},
                      kPipecDomain);
       }},
      {"FusedMatMul", kPipecDomain, "both_transposed",
       [](M& m) {
         return m.Ops("FusedMatMul", {m.Parameter({2, 4, 3}), m.Parameter({2, 5, 4})},
                      {{"trans_a", int64_t{1}}, {"trans_b", int64_t{1}}, {"alpha", -2.0f}}, kPipecDomain);
       }},
      {"FusedMatMul", kPipecDomain, "bias",
       [](M& m) {
         return m.Ops("FusedMatMul", {m.Parameter({2, 3, 4}), m.Parameter({4, 5}), m.Parameter({5})}, {}, kPipecDomain);
       }},
      {"FusedMatMul", kPipecDomain, "b_transposed_bias",
       [](M& m) {
         return m.Ops("FusedMatMul", {m.Parameter({2, 3, 4}), m.Parameter({5, 4}), m.Parameter({5})},
                      {{"trans_b", int64_t{1}}},
                      kPipecDomain);
       }},
      {"FusedMatMul", kPipecDomain, "a_transposed_bias",
       [](M& m) {
         return m.Ops("FusedMatMul", {m.Parameter({4, 3}), m.Parameter({4, 5}), m.Parameter({5})},
                      {{"trans_a", int64_t{1}}},
                      kPipecDomain);
       }},
      {"FusedMatMul", kPipecDomain, "scaled_bias",
       [](M& m) {
         return m.Ops("FusedMatMul", {m.Parameter({3, 4}), m.Parameter({4, 5}), m.Parameter({5})},
                      {{"alpha", 0.5f}}, kPipecDomain);
       }},
      {"FusedMatMul", kPipecDomain, "batched_bias",
       [](M& m) {
         return m.Ops("FusedMatMul", {m.Parameter({2, 3, 4}), m.Parameter({2, 4, 5}), m.Parameter({5})}, {},
                      kPipecDomain);
       }},
      {"FusedMatMul", kPipecDomain, "left_vector_bias",
       [](M& m) {
         return m.Ops("FusedMatMul", {m.Parameter({4}), m.Parameter({4, 5}), m.Parameter({5})}, {}, kPipecDomain); }},
      {"FusedMatMul", kPipecDomain, "gelu",
       [](M& m) {
         return m.Ops("FusedMatMul", {m.Parameter({2, 3, 4}), m.Parameter({5, 4}), m.Parameter({5})},
                      {{"trans_b", int64_t{1}}, {"activation", std::string("GeluTanh")}}, kPipecDomain);
       }},
      {"Gemm", "", "bias_scaled",
       [](M& m) {
         return m.Ops("Gemm", {m.Parameter({3, 4}), m.Parameter({2, 4}), m.Parameter({2})},
                      {{"transB", int64_t{1}}, {"beta", 0.25f}});
       }},
      {"Gemm", "", "plain",
       [](M& m) { return m.Ops("Gemm", {m.Parameter({3, 4}), m.Parameter({4, 2}), m.Parameter({2})}); }},
      {"Gemm", "", "no_c",
       [](M& m) { return m.Ops("Gemm", {m.Parameter({3, 4}), m.Parameter({2, 4})}, {{"transB", int64_t{1}}}); }},
      {"Gemm", "", "scaled",
       [](M& m) {
         return m.Ops("Gemm", {m.Parameter({4, 3}), m.Parameter({2, 4}), m.Parameter({3, 1})},
                      {{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5f}, {"beta", 0.25f}});
       }},

      {"Add", "", "broadcast", [](M& m) { return m.Ops("Add", {m.Parameter({2, 1, 3}), m.Parameter({4, 1})}); }},
      {"Sub", "", "broadcast", [](M& m) { return m.Ops("Sub", {m.Parameter({3}), m.Parameter({2, 3})}); }},
      {"Mul", "", "broadcast", [](M& m) { return m.Ops("Mul", {m.Parameter({2, 3}), m.Parameter({})}); }},
      {"Mul", "", "square",
       [](M& m) {
         Value* x = m.Parameter({3});
         return m.Ops("Mul", {x, x});
       }},
      {"Div", "", "broadcast", [](M& m) { return m.Ops("Div", {m.Parameter({2, 3}), m.Parameter({1, 3}, 1, 2)}); }},
      {"Neg", "", "", [](M& m) { return m.Ops("Neg", {m.Parameter({2, 3})}); }},
      {"Sum", "", "broadcast",
       [](M& m) { return m.Ops("Sum", {m.Parameter({2, 3}), m.Parameter({3}), m.Parameter({2, 1})}); }},
      {"Pow", "", "both", [](M& m) { return m.Ops("Pow", {m.Parameter({2, 3}, 1, 2), m.Parameter({3}, -2, 2)}); }},
      {"Pow", "", "square", [](M& m) { return m.Ops("Pow", {m.Parameter({2, 3}), m.Constant({}, {2})}); }},
      {"Pow", "", "cube", [](M& m) { return m.Ops("Pow", {m.Parameter({2, 3}), m.Constant({1}, {3})}); }},
      {"Pow", "", "integers", [](M& m) { return m.Ops("Pow", {m.Parameter({2, 3}), m.Ints({3}, {2, 0, 3})}); }},
      {"Reciprocal", "", "", [](M& m) { return m.Ops("Reciprocal", {m.Parameter({2, 3}, 1, 2)}); }},
      {"Abs", "", "", [](M& m) { return m.Ops("Abs", {m.Parameter({2, 5})}); }},
      {"Max", "", "broadcast",
       [](M& m) { return m.Ops("Max", {m.Parameter({2, 3}), m.Parameter({3}), m.Parameter({2, 1})}); }},
      {"Min", "", "broadcast", [](M& m) { return m.Ops("Min", {m.Parameter({2, 3}), m.Parameter({3})}); }},

      {"Sqrt", "", "", [](M& m) { return m.Ops("Sqrt", {m.Parameter({2, 3}, 0.5, 2)}); }},
      {"Exp", "", "", [](M& m) { return m.Ops("Exp", {m.Parameter({2, 3})}); }},
      {"Log", "", "", [](M& m) { return m.Ops("Log", {m.Parameter({2, 3}, 0.5, 2)}); }},
      {"Erf", "", "", [](M& m) { return m.Ops("Erf", {m.Parameter({2, 3}, -2, 2)}); }},

      {"Tanh", "", "", [](M& m) { return m.Ops("Tanh", {m.Parameter({2, 3}, -2, 2)}); }},
      {"Sigmoid", "", "", [](M& m) { return m.Ops("Sigmoid", {m.Parameter({2, 3}, -2, 2)}); }},
      {"Relu", "", "", [](M& m) { return m.Ops("Relu", {m.Parameter({4, 5})}); }},
      {"Gelu", "", "exact", [](M& m) { return m.Ops("Gelu", {m.Parameter({2, 3}, -2, 2)}); }},
      {"Gelu", "", "tanh",
       [](M& m) { return m.Ops("Gelu", {m.Parameter({2, 3}, -2, 2)}, {{"approximate", std::string("tanh")}}); }},
      {"Dropout", kPipecDomain, "",
       [](M& m) {
         return m.Ops("Dropout", {m.Parameter({4, 5})},
                      {{"ratio", 0.3f}, {"key", int64_t{7}}, {"batch_axis", int64_t{0}}},
                      kPipecDomain);
       }},

      {"Softmax", "", "last", [](M& m) { return m.Ops("Softmax", {m.Parameter({2, 5}, -2, 2)}); }},
      {"Softmax", "", "middle",
       [](M& m) { return m.Ops("Softmax", {m.Parameter({2, 4, 3}, -2, 2)}, {{"axis", int64_t{1}}}); }},
      {"LogSoftmax", "", "last", [](M& m) { return m.Ops("LogSoftmax", {m.Parameter({2, 5}, -2, 2)}); }},
      {"LogSoftmax", "", "first",
       [](M& m) { return m.Ops("LogSoftmax", {m.Parameter({4, 3}, -2, 2)}, {{"axis", int64_t{0}}}); }},
      {"LayerNormalization", "", "last",
       [](M& m) {
         return m.Ops("LayerNormalization", {m.Parameter({2, 3, 8}), m.Parameter({8}), m.Parameter({8})});
       }},
      {"LayerNormalization", "", "two_axes",
       [](M& m) {
         return m.Ops("LayerNormalization", {m.Parameter({3, 2, 4}), m.Parameter({2, 4})},
                      {{"axis", int64_t{1}}, {"epsilon", 0.1f}});
       }},
      {"LayerNormalization", "", "bias_only",
       [](M& m) { return m.Ops("LayerNormalization", {m.Random({3, 4}), m.Random({4}), m.Parameter({4})}); }},

      {"ReduceSum", "", "axes", [](M& m) { return m.Ops("ReduceSum", {m.Parameter({2, 3, 4}), m.Ints({-1, 0})}); }},
      {"ReduceSum", "", "dropped_axis",
       [](M& m) { return m.Ops("ReduceSum", {m.Parameter({2, 3, 4}), m.Ints({1})}, {{"keepdims", int64_t{0}}}); }},
      {"ReduceSum", "", "all",
       [](M& m) { return m.Ops("ReduceSum", {m.Parameter({2, 3})}, {{"keepdims", int64_t{0}}}); }},
      {"ReduceSum", "", "nothing",
       [](M& m) { return m.Ops("ReduceSum", {m.Parameter({2, 3})}, {{"noop_with_empty_axes", int64_t{1}}}); }},
      {"ReduceMean", "", "axes", [](M& m) { return m.Ops("ReduceMean", {m.Parameter({2, 3, 4}), m.Ints({1, 2})}); }},
      {"ReduceMean", "", "dropped_axis",
       [](M& m) { return m.Ops("ReduceMean", {m.Parameter({2, 3, 4}), m.Ints({0})}, {{"keepdims", int64_t{0}}}); }},
      {"ReduceMax", "", "axes", [](M& m) { return m.Ops("ReduceMax", {m.Parameter({2, 3, 4}), m.Ints({2, 0})}); }},
      {"ReduceMax", "", "dropped_axis",
       [](M& m) { return m.Ops("ReduceMax", {m.Parameter({2, 3, 4}), m.Ints({-1})}, {{"keepdims", int64_t{0}}}); }},

      {"Gather", "", "duplicates",
       [](M& m) { return m.Ops("Gather", {m.Parameter({5, 3}), m.Ints({2, 2}, {1, 4, 1, -1})}); }},
      {"Gather", "", "middle_axis",
       [](M& m) { return m.Ops("Gather", {m.Parameter({2, 4, 3}), m.Ints({3}, {3, 0, 3})}, {{"axis", int64_t{1}}}); }},
      {"Gather", "", "scalar",
       [](M& m) { return m.Ops("Gather", {m.Parameter({2, 4}), m.Ints({}, {-2})}, {{"axis", int64_t{-1}}}); }},
      {"Slice", "", "steps",
       [](M& m) {
         return m.Ops("Slice", {m.Parameter({6, 5}), m.Ints({1, -1}), m.Ints({100, -100}),
                      m.Ints({0, -1}), m.Ints({2, -2})});
       }},
      {"Slice", "", "plain", [](M& m) { return m.Ops("Slice", {m.Parameter({4, 5}), m.Ints({-3}), m.Ints({-1})}); }},
      {"Slice", "", "nothing",
       [](M& m) {
         Value* x = m.Parameter({4, 5});
         Value* none = m.Op("Slice", {x, m.Ints({4}), m.Ints({9})});
         return m.Ops("Concat", {none, x}, {{"axis", int64_t{0}}});
       }},
      {"Split", "", "all",
       [](M& m) { return m.Ops("Split", {m.Parameter({2, 6}), m.Ints({1, 2, 3})}, {{"axis", int64_t{-1}}}, "", 3); }},
      {"Split", "", "unused_output",
       [](M& m) {
         return std::vector<Value*>{
             m.Ops("Split", {m.Parameter({6, 2})}, {{"axis", int64_t{0}}, {"num_outputs", int64_t{3}}}, "", 3)[1]};
       }},
      {"Concat", "", "middle",
       [](M& m) {
         return m.Ops("Concat", {m.Parameter({2, 1, 3}), m.Random({2, 2, 3}), m.Parameter({2, 3, 3})},
                      {{"axis", int64_t{-2}}});
       }},
      {"Concat", "", "same_twice",
       [](M& m) {
         Value* x = m.Parameter({2, 3});
         return m.Ops("Concat", {x, x}, {{"axis", int64_t{1}}});
       }},

      {"Where", "", "broadcast",
       [](M& m) { return m.Ops("Where", {m.Bools({2, 1}, {1, 0}), m.Parameter({3}), m.Parameter({4, 1, 1})}); }},
      {"Trilu", "", "upper", [](M& m) { return m.Ops("Trilu", {m.Parameter({2, 3, 4})}); }},
      {"Trilu", "", "lower",
       [](M& m) { return m.Ops("Trilu", {m.Parameter({4, 4}), m.Ints({}, {-1})}, {{"upper", int64_t{0}}}); }},
      {"OneHot", "", "values",
       [](M& m) {
         return m.Ops("OneHot", {m.Ints({3}, {0, 2, 7}), m.Ints({}, {4}), m.Parameter({2})}, {{"axis", int64_t{0}}});
       }},

      {"Reshape", "", "", [](M& m) { return m.Ops("Reshape", {m.Parameter({2, 6}), m.Ints({3, -1})}); }},
      {"Flatten", "", "", [](M& m) { return m.Ops("Flatten", {m.Parameter({2, 3, 2})}, {{"axis", int64_t{2}}}); }},
      {"Squeeze", "", "", [](M& m) { return m.Ops("Squeeze", {m.Parameter({2, 1, 3}), m.Ints({1})}); }},
      {"Unsqueeze", "", "", [](M& m) { return m.Ops("Unsqueeze", {m.Parameter({2, 3}), m.Ints({0, -1})}); }},
      {"Identity", "", "", [](M& m) { return m.Ops("Identity", {m.Parameter({2, 3})}); }},
      {"Transpose", "", "permuted",
       [](M& m) { return m.Ops("Transpose", {m.Parameter({2, 3, 4})}, {{"perm", Ints{2, 0, 1}}}); }},
      {"Transpose", "", "reversed", [](M& m) { return m.Ops("Transpose", {m.Parameter({2, 3, 4})}); }},
      {"Expand", "", "", [](M& m) { return m.Ops("Expand", {m.Parameter({3, 1}), m.Ints({2, 1, 4})}); }},
      {"Tile", "", "", [](M& m) { return m.Ops("Tile", {m.Parameter({2, 3, 2}), m.Ints({3, 1, 2})}); }},
      // In steps that float32 holds exactly.
      {"Cast", "", "float32",
       [](M& m) {
         Value* x = m.ParameterOf({2, 2}, {0.25, -1.5, 3, 0.125});
         Value* cast = m.Op("Cast", {x}, {{"to", static_cast<int64_t>(DType::kFloat32)}});
         return m.Ops("Cast", {cast}, {{"to", static_cast<int64_t>(DType::kFloat64)}});
       },
       0x1p-8},

      {"SoftmaxCrossEntropy", kPipecDomain, "sum",
       [](M& m) {
         return m.Ops("SoftmaxCrossEntropy", {m.Parameter({4, 5}, -2, 2), m.Ints({4}, {0, 3, -100, 4})},
                      {{"axis", int64_t{1}}, {"reduction", std::string("sum")}, {"ignore_index", int64_t{-100}},
                       {"label_smoothing", 0.1f}},
                      kPipecDomain);
       }},
      {"SoftmaxCrossEntropy", kPipecDomain, "weighted_middle_axis",
       [](M& m) {
         return m.Ops("SoftmaxCrossEntropy",
                      {m.Parameter({2, 3, 2}, -2, 2), m.Ints({2, 2}, {0, 2, 1, 1}), m.Constant({3}, {0.5, 1, 2})},
                      {{"axis", int64_t{1}}, {"reduction", std::string("none")}, {"ignore_index", int64_t{1}},
                       {"label_smoothing", 0.2f}},
                      kPipecDomain);
       }},
      {"NegativeLogLikelihood", kPipecDomain, "weighted",
       [](M& m) {
         return m.Ops("NegativeLogLikelihood",
                      {m.Parameter({3, 4}), m.Ints({3}, {1, 0, 3}), m.Constant({4}, {0.5, 1, 2, 3})},
                      {{"axis", int64_t{1}}, {"reduction", std::string("sum")}, {"ignore_index", int64_t{0}}},
                                   kPipecDomain);
       }},
      {"MeanSquaredError", kPipecDomain, "both",
       [](M& m) { return m.Ops("MeanSquaredError", {m.Parameter({3, 4}), m.Parameter({3, 4})}, {}, kPipecDomain); }},
      {"BinaryCrossEntropyWithLogits", kPipecDomain, "both",
       [](M& m) {
         return m.Ops("BinaryCrossEntropyWithLogits", {m.Parameter({3, 4}, -3, 3), m.Parameter({3, 4}, 0, 1)}, {},
                      kPipecDomain);
       }},
  };
  for (const auto& family : {MathCases(), LinearCases(), SamplingCases(), PlaceCases(), WindowCases(),
                             AttentionCases(), NormalizationCases(), RecurrentCases()})
    all->insert(all->end(), family.begin(), family.end());
  return all;
}

}  // namespace

const std::vector<GradientCase>& AllGradientCases() {
  static const auto* const cases = MakeCases();
  return *cases;
}

}  // namespace pipec
