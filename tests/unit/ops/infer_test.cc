// Types of the helper ops' outputs, and what is refused.
#include <set>

#include "compiler/ops/op_info.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/ops/graph_builder.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

constexpr DType kF32 = DType::kFloat32, kF64 = DType::kFloat64, kI64 = DType::kInt64;

struct Case {
  std::string op;
  std::vector<TensorType> inputs;  // kUndefined: absent
  Attributes attributes;
  std::vector<TensorType> outputs;
};

// Attributes of the gradient of something with two groups.
Attributes Grouped(std::vector<int64_t> shape) {
  return With({{"shape", std::move(shape)}, {"group", int64_t{2}}});
}

// Of an op with casts of its own.
const TensorType kSmall{DType::kBFloat16, {2, 3}};
Attributes ToType(DType dtype) { return With({{"to", static_cast<int64_t>(dtype)}}); }

std::vector<Case> Cases() {
  const TensorType x{kF32, {2, 3}}, scalar{kF32, {}}, sum{kF64, {}}, labels{kI64, {2}}, vector{kF32, {2}};
  const TensorType absent, image{kF32, {2, 3, 4}}, c{kF32, {3}}, count{kI64, {}};
  return {
      {"FusedMatMul",
       {{kF32, {5, 4, 3}}, {kF32, {4, 6}}},
       With({{"trans_a", int64_t{1}}}),
       {{kF32, {5, 3, 6}}}},
      {"FusedMatMul",
       {{kF32, {1, 4, 3}}, {kF32, {7, 6, 3}}},
       With({{"trans_b", int64_t{1}}}),
       {{kF32, {7, 4, 6}}}},
      {"FusedMatMul", {{kF32, {3}}, {kF32, {3}}}, {}, {scalar}},
      {"FusedMatMul", {{kF32, {3}}, {kF32, {2, 3, 5}}}, {}, {{kF32, {2, 5}}}},
      {"FusedMatMul", {{kF32, {2, 3}}, {kF32, {3, 5}}, {kF32, {5}}}, {}, {{kF32, {2, 5}}}},
      {"FusedMatMul",
       {{kF32, {2, 3}}, {kF32, {3, 5}}, absent, {kF32, {2, 5}}},
       With({{"activation", std::string("GeluTanhGrad")}}),
       {{kF32, {2, 5}}}},
      {"MatMulWeightGrad", {{kF32, {2, 3}}, {kF32, {2, 5}}}, {}, {{kF32, {5, 3}}, {kF32, {3}}}},
      {"MatMulWeightGrad",
       {{kF32, {2, 3}}, {kF32, {2, 5}}},
       With({{"trans_b", int64_t{1}}}),
       {{kF32, {3, 5}}, {kF32, {3}}}},
      {"FusedAttention", {{kF32, {2, 5, 4}}, {kF32, {2, 3, 4}}, {kF32, {2, 3, 6}}}, {}, {{kF32, {2, 5, 6}}}},
      {"FusedAttention",
       {{kF64, {2, 7, 5, 4}}, {kF64, {2, 7, 3, 4}}, {kF64, {2, 7, 3, 6}}, {kF64, {7, 1, 3}}},
       {},
       {{kF64, {2, 7, 5, 6}}, {kF64, {2, 7, 5}}}},
      {"FusedAttentionGrad",
       {{kF32, {2, 5, 6}}, {kF32, {2, 5, 4}}, {kF32, {2, 5, 4}}, {kF32, {2, 5, 6}}, {kF32, {2, 5, 6}},
        {kF32, {2, 5}}, {DType::kBool, {5, 5}}},
       With({{"causal", int64_t{1}}}),
       {{kF32, {2, 5, 4}}, {kF32, {2, 5, 4}}, {kF32, {2, 5, 6}}}},
      {"Gradient", {x, c, scalar}, {}, {x, c}},
      {"TanhGrad", {x, x}, {}, {x}},
      {"SigmoidGrad", {x, x}, {}, {x}},
      {"ReluGrad", {x, x}, {}, {x}},
      {"GeluGrad", {x, x}, {}, {x}},
      {"SoftmaxGrad", {x, x}, With({{"axis", int64_t{-1}}}), {x}},
      {"LogSoftmaxGrad", {x, x}, With({{"axis", int64_t{0}}}), {x}},
      {"LayerNormalization", {x, {kF32, {3}}, {kF32, {3}}}, {}, {x, {kF32, {2, 1}}, {kF32, {2, 1}}}},
      {"LayerNormalization", {kSmall, {kF32, {3}}}, ToType(DType::kBFloat16), {kSmall}},
      {"LayerNormalization", {x, {kF32, {3}}}, ToType(DType::kFloat16), {{DType::kFloat16, {2, 3}}}},
      {"LayerNormalizationInputGrad",
       {kSmall, x, {kF32, {3}}, {kF32, {2, 1}}, {kF32, {2, 1}}},
       ToType(DType::kBFloat16),
       {kSmall}},
      {"LayerNormalizationWeightGrad",
       {x, kSmall, {kF32, {2, 1}}, {kF32, {2, 1}}},
       ToType(kF32),
       {{kF32, {3}}, {kF32, {3}}}},
      {"SoftmaxCrossEntropy", {kSmall, labels}, ToType(kF32), {scalar, scalar, vector}},
      {"SoftmaxCrossEntropyGrad", {scalar, kSmall, labels, vector}, ToType(DType::kBFloat16), {kSmall}},
      {"LayerNormalizationInputGrad", {x, x, {kF32, {3}}, {kF32, {2, 1}}, {kF32, {2, 1}}}, {}, {x}},
      {"LayerNormalizationWeightGrad",
       {x, x, {kF32, {2, 1}}, {kF32, {2, 1}}},
       {},
       {{kF32, {3}}, {kF32, {3}}}},
      {"LayerNormalizationWeightGrad", {x, x, {kF32, {2, 1}}, {kF32, {2, 1}}}, {}, {{kF32, {3}}}},
      {"TrainingBatchNormalization", {image, c, c, c, c}, {}, {image, c, c}},
      {"RunningAverage", {c, c}, {}, {c}},
      {"BatchNormalizationInputGrad", {image, image, c, c, c}, {}, {image}},
      {"BatchNormalizationWeightGrad", {image, image, c, c}, {}, {c, c}},
      {"BatchNormalizationWeightGrad", {image, image, c, c}, {}, {c}},
      {"ConvInputGrad", {{kF32, {2, 6, 4}}, {kF32, {6, 2, 3}}}, Grouped({2, 4, 6}), {{kF32, {2, 4, 6}}}},
      {"ConvWeightGrad", {{kF32, {2, 6, 4}}, {kF32, {2, 4, 6}}}, Grouped({6, 2, 3}), {{kF32, {6, 2, 3}}}},
      {"ConvTransposeInputGrad", {{kF32, {2, 4, 6}}, {kF32, {6, 2, 3}}}, Grouped({2, 6, 4}), {{kF32, {2, 6, 4}}}},
      {"ConvTransposeWeightGrad", {{kF32, {2, 4, 6}}, {kF32, {2, 6, 4}}}, Grouped({6, 2, 3}), {{kF32, {6, 2, 3}}}},
      {"MaxPoolGrad", {{kF32, {2, 4, 3}}, {kI64, {2, 4, 3}}}, Grouped({2, 4, 6}), {{kF32, {2, 4, 6}}}},
      {"AveragePoolGrad", {{kF32, {2, 4, 3}}}, Grouped({2, 4, 6}), {{kF32, {2, 4, 6}}}},
      {"RNNGrad",
       {{kF32, {5, 2, 3}}, {kF32, {1, 4, 3}}, {kF32, {1, 4, 4}}, absent, {DType::kInt32, {2}}, absent, absent,
        {kF32, {5, 1, 2, 4}}, absent, absent},
       {},
       {{kF32, {5, 2, 3}}, {kF32, {1, 10, 4}}, {kF32, {1, 10, 4}}, {kF32, {1, 2, 4}}}},
      {"GRUGrad",
       {{kF32, {2, 5, 3}}, {kF32, {2, 12, 3}}, {kF32, {2, 12, 4}}, {kF32, {2, 24}}, absent, absent, absent,
        {kF32, {2, 5, 2, 4}}, absent, absent},
       With({{"layout", int64_t{1}}}),
       {{kF32, {2, 5, 3}}, {kF32, {2, 10, 12}}, {kF32, {2, 10, 4}}, {kF32, {2, 2, 4}}, {kF32, {2, 10, 4}}}},
      {"LSTMGrad",
       {{kF32, {5, 2, 3}}, {kF32, {1, 16, 3}}, {kF32, {1, 16, 4}}, absent, absent, {kF32, {1, 2, 4}},
        {kF32, {1, 2, 4}}, {kF32, {5, 1, 2, 4}}, {kF32, {1, 2, 4}}, {kF32, {1, 2, 4}}},
       {},
       {{kF32, {5, 2, 3}}, {kF32, {1, 10, 16}}, {kF32, {1, 10, 4}}, {kF32, {1, 2, 4}}, {kF32, {1, 2, 4}}}},
      {"GatherGrad",
       {{kF32, {2, 5, 3}}, {kI64, {2, 5}}},
       With({{"shape", std::vector<int64_t>{9, 3}}}),
       {{kF32, {9, 3}}}},
      {"SliceGrad",
       {{kF32, {2, 2}}},
       With({{"shape", std::vector<int64_t>{2, 5}},
             {"starts", std::vector<int64_t>{4}},
             {"axes", std::vector<int64_t>{1}},
             {"steps", std::vector<int64_t>{-3}}}),
       {{kF32, {2, 5}}}},
      {"Dropout", {x}, With({{"ratio", 0.5f}}), {x, {DType::kBool, {2, 3}}}},
      {"DropoutGrad", {x}, With({{"ratio", 0.5f}}), {x}},
      {"SoftmaxCrossEntropy", {x, labels}, {}, {scalar, scalar, vector}},
      {"SoftmaxCrossEntropy",
       {x, labels, {kF32, {3}}},
       With({{"reduction", std::string("none")}}),
       {vector, scalar, vector}},
      {"SoftmaxCrossEntropyGrad", {scalar, x, labels, vector}, {}, {x}},
      {"NegativeLogLikelihood", {x, labels}, {}, {scalar, scalar}},
      {"NegativeLogLikelihoodGrad", {scalar, labels}, With({{"shape", std::vector<int64_t>{2, 3}}}), {x}},
      {"MeanSquaredError", {x, x}, {}, {scalar, scalar}},
      {"MeanSquaredErrorGrad", {scalar, x, x}, {}, {x}},
      {"BinaryCrossEntropyWithLogits", {x, x}, {}, {scalar, scalar}},
      {"BinaryCrossEntropyWithLogitsGrad", {scalar, x, x}, {}, {x}},
      {"CountCorrect", {x, labels}, {}, {{kI64, {}}, {kI64, {}}}},
      {"Accumulate", {sum, scalar}, {}, {sum}},
      {"Accumulate", {{kI64, {}}, {kI64, {}}}, {}, {{kI64, {}}}},
      {"SquaredNorm", {x}, {}, {sum}},
      {"GradientScale",
       {sum, absent, sum, {kF64, {3}}},
       With({{"order", std::vector<int64_t>{3, 0, 1, 2}}}),
       {sum, sum, sum}},
      {"LossScale", {}, With({{"divisor", 8.0f}}), {scalar}},
      {"Pack", {sum, sum}, {}, {{kF64, {2}}}},
      {"Sgd", {x, x, sum}, {}, {x}},
      {"Momentum", {x, x, x, sum}, {}, {x, x}},
      {"Adam", {x, x, x, x, sum}, {}, {x, x, x}},
      {"Adagrad", {x, x, x, sum}, {}, {x, x}},
      {"Message", {x, labels}, {}, {x, labels}},
      {"NonZero", {image}, {}, {{kI64, {3, 24}}, count}},
      {"Compress", {image, {DType::kBool, {2}}}, With({{"axis", int64_t{1}}}), {{kF32, {2, 2, 4}}, count}},
      {"Compress", {image, {DType::kBool, {30}}}, {}, {{kF32, {24}}, count}},
      {"Unique", {x}, {}, {{kF32, {6}}, {kI64, {6}}, {kI64, {6}}, {kI64, {6}}, count}},
      {"Unique", {x}, With({{"axis", int64_t{1}}}), {x, {kI64, {3}}, {kI64, {3}}, {kI64, {3}}, count}},
      {"NonMaxSuppression", {{kF32, {2, 5, 4}}, {kF32, {2, 3, 5}}, {kI64, {}}}, {}, {{kI64, {30, 3}}, count}},
  };
}

absl::StatusOr<std::vector<TensorType>> Infer(const Case& c) {
  GraphBuilder b;
  std::vector<Value*> inputs;
  for (const TensorType& type : c.inputs) {
    inputs.push_back(type.dtype == DType::kUndefined ? nullptr : b.Input(type.shape, -1, type.dtype));
  }
  return FindOp(c.op, kPipecDomain)->infer(GraphBuilder::Spec(c.op, inputs, c.outputs.size(), c.attributes));
}

TEST(Infer, EveryHelperOp) {
  std::set<std::string> seen;
  for (const Case& c : Cases()) {
    auto types = Infer(c);
    ASSERT_TRUE(types.ok()) << types.status();
    EXPECT_EQ(*types, c.outputs) << c.op;
    seen.insert(c.op);
  }
  for (const OpInfo& info : AllOps()) {
    EXPECT_EQ(info.infer != nullptr, info.domain == kPipecDomain) << info.op;
    EXPECT_TRUE(!info.infer || seen.count(std::string(info.op))) << info.op;
  }
}

// Any one operand with one more row, of an integer type, or missing is refused, by name and shapes.
TEST(Infer, RefusesWrongOperands) {
  // Ops that look at entries of any type, any number of them.
  const std::set<std::string> any_type = {"Message", "NonZero", "Compress", "Unique", "NonMaxSuppression"};
  for (const Case& good : Cases()) {
    if (any_type.count(good.op)) continue;
    for (size_t k = 0; k < good.inputs.size(); ++k) {
      if (good.inputs[k].dtype == DType::kUndefined) continue;
      Case integer = good;
      integer.inputs[k].dtype = DType::kInt8;
      auto status = Infer(integer).status();
      EXPECT_FALSE(status.ok()) << good.op << " operand " << k;
      EXPECT_THAT(std::string(status.message()), HasSubstr(good.op + " (node n): operands "));
      Case missing = good;
      missing.inputs.resize(k);
      const std::set<std::string> third = {"SoftmaxCrossEntropy", "FusedMatMul", "LayerNormalization"};
      const bool optional =
          (third.count(good.op) && k == 2) ||
          (good.op == "FusedAttention" && k == 3) || (good.op == "FusedAttentionGrad" && k == 6) ||
          good.op == "Pack" || good.op == "GradientScale";
      EXPECT_TRUE(optional || !Infer(missing).ok()) << good.op << " operand " << k;
      if (good.inputs.size() < 2) continue;
      Case taller = good;
      const bool free = good.op == "GradientScale" || good.op == "FusedMatMul" || good.op == "Gradient" ||
                        (good.op == "LayerNormalization" && k == 0) ||
                        (good.op == "TrainingBatchNormalization" && k == 0);  // an axis of its own
      if (taller.inputs[k].shape.empty() || free) continue;
      taller.inputs[k].shape[0] += 8;
      EXPECT_FALSE(Infer(taller).ok()) << good.op << " operand " << k;
    }
  }
}

TEST(Infer, RefusesWrongCasts) {
  const TensorType x{kF32, {2, 3}}, row{kF32, {3}};
  const auto error = [](std::vector<TensorType> inputs, DType to) {
    const Case c{"LayerNormalization", std::move(inputs), ToType(to), {{}}};
    return std::string(Infer(c).status().message());
  };
  EXPECT_THAT(error({x, row}, kF64), HasSubstr("attribute to makes float32 float64"));
  EXPECT_THAT(error({{kF64, {2, 3}}, {kF64, {3}}}, kF32), HasSubstr("attribute to makes float64 float32"));
  EXPECT_THAT(error({kSmall, {DType::kBFloat16, {3}}}, kF32), HasSubstr("operand 1 must be float32[3]"));
  // Its results are no rows.
  const Case gradient{"LayerNormalizationWeightGrad",
                      {x, x, {kF32, {2, 1}}, {kF32, {2, 1}}},
                      ToType(DType::kBFloat16),
                      {{}}};
  EXPECT_FALSE(Infer(gradient).ok());
}

TEST(Infer, RefusesWrongProducts) {
  auto status = Infer({"FusedMatMul", {{kF32, {2, 3}}, {kF32, {4, 5}}}, {}, {{}}}).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("float32[2,3], float32[4,5]: the axes to sum over differ: 3 and 4"));
  EXPECT_FALSE(Infer({"FusedMatMul", {{kF32, {2, 2, 3}}, {kF32, {4, 3, 5}}}, {}, {{}}}).ok());
  EXPECT_FALSE(Infer({"FusedMatMul", {{kF32, {}}, {kF32, {3, 5}}}, {}, {{}}}).ok());
  EXPECT_FALSE(Infer({"FusedMatMul", {{kF32, {2, 3}}, {kF64, {3, 5}}}, {}, {{}}}).ok());
  status = Infer({"FusedMatMul", {{kF32, {2, 3}}, {kF32, {3, 5}}, {kF32, {2, 5}}}, {}, {{}}}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("the bias must be float32[5]"));
  EXPECT_FALSE(Infer({"FusedMatMul", {{kF32, {2, 3}}, {kF32, {3}}, {kF32, {2}}}, {}, {{}}}).ok());
  const auto activated = [](const char* activation, std::vector<TensorType> more) {
    Case one{"FusedMatMul", {{kF32, {2, 3}}, {kF32, {3, 5}}}, With({{"activation", std::string(activation)}}), {{}}};
    one.inputs.insert(one.inputs.end(), more.begin(), more.end());
    return std::string(Infer(one).status().message());
  };
  const TensorType absent, bias{kF32, {5}}, y{kF32, {2, 5}};
  EXPECT_EQ(activated("GeluTanh", {bias}), "");
  EXPECT_THAT(activated("Relu", {}), HasSubstr("activation is 'Relu', wanted 'GeluTanh' or 'GeluTanhGrad'"));
  EXPECT_THAT(activated("GeluTanh", {absent, y}), HasSubstr("operand 3 is for activation 'GeluTanhGrad'"));
  EXPECT_THAT(activated("GeluTanhGrad", {bias, y}), HasSubstr("takes no bias"));
  EXPECT_THAT(activated("GeluTanhGrad", {absent, bias}), HasSubstr("operand 3 must be float32[2,5]"));
}

// What an exponential reads stays float32.
TEST(Infer, AttentionOfSmallFloats) {
  constexpr DType kBF16 = DType::kBFloat16;
  const auto types = [](DType mask, Shape mask_shape) {
    return Infer({"FusedAttention",
                  {{kBF16, {2, 5, 4}}, {kBF16, {2, 3, 4}}, {kBF16, {2, 3, 6}}, {mask, mask_shape}},
                  {},
                  {{}, {}}});
  };
  EXPECT_EQ(*types(kF32, {5, 3}), (std::vector<TensorType>{{kBF16, {2, 5, 6}}, {kF32, {2, 5}}}));
  EXPECT_TRUE(types(DType::kBool, {2, 1, 1}).ok());
  EXPECT_FALSE(types(kBF16, {5, 3}).ok());
  EXPECT_THAT(std::string(types(kF32, {5, 2}).status().message()), HasSubstr("broadcast to [2,5,3]"));
  EXPECT_FALSE(types(kF32, {1, 2, 5, 3}).ok());
}

TEST(Infer, RefusesWrongAttention) {
  const auto ok = [](Shape q, Shape k, Shape v, bool causal = false) {
    return Infer({"FusedAttention", {{kF32, q}, {kF32, k}, {kF32, v}}, With({{"causal", int64_t{causal}}}), {{}}})
        .ok();
  };
  EXPECT_TRUE(ok({5, 4}, {3, 4}, {3, 6}));
  EXPECT_FALSE(ok({5, 4}, {3, 5}, {3, 6}));
  EXPECT_FALSE(ok({5, 4}, {3, 4}, {2, 6}));
  EXPECT_FALSE(ok({2, 5, 4}, {1, 3, 4}, {2, 3, 6}));
  EXPECT_FALSE(ok({2, 5, 4}, {3, 4}, {2, 3, 6}));
  EXPECT_FALSE(ok({5, 4}, {3, 4}, {3, 6}, true));
  EXPECT_TRUE(ok({3, 4}, {3, 4}, {3, 6}, true));
}

// Float32 is the result of 16-bit floats where it is asked for.
TEST(Infer, ProductsThatStayFloat32) {
  constexpr DType kBF16 = DType::kBFloat16;
  const auto types = [](DType dtype, DType to) {
    return Infer(
        {"FusedMatMul", {{dtype, {2, 3}}, {dtype, {3, 5}}}, With({{"to", static_cast<int64_t>(to)}}), {{}}});
  };
  EXPECT_EQ(types(kBF16, kF32)->front(), (TensorType{kF32, {2, 5}}));
  EXPECT_EQ(types(kBF16, kBF16)->front(), (TensorType{kBF16, {2, 5}}));
  EXPECT_FALSE(types(kBF16, kF64).ok());
  EXPECT_FALSE(types(kF64, kF32).ok());
}

TEST(Infer, RefusesWrongAttributes) {
  const TensorType x{kF32, {2, 3}};
  EXPECT_FALSE(Infer({"SoftmaxGrad", {x, x}, With({{"axis", int64_t{2}}}), {x}}).ok());
  EXPECT_FALSE(Infer({"Dropout", {x}, With({{"ratio", 1.0f}}), {x}}).ok());
  EXPECT_FALSE(
      Infer({"SoftmaxCrossEntropy", {x, {kI64, {2}}}, With({{"reduction", std::string("mean")}}), {x}}).ok());
  EXPECT_FALSE(Infer({"LossScale", {}, With({{"divisor", 0.0f}}), {{kF32, {}}}}).ok());
  const TensorType sum{kF64, {}};
  EXPECT_FALSE(
      Infer({"GradientScale", {sum, {}, sum}, With({{"order", std::vector<int64_t>{1}}}), {sum, sum, sum}})
          .ok());
}

}  // namespace
}  // namespace pipec
