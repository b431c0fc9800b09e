// Old forms, and what ONNX's definitions of their time say of them; more of them in normalize_forms_test.cc.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "compiler/onnx/export/module.h"
#include "onnx/checker.h"
#include "tests/unit/onnx/model_file.h"
#include "tests/unit/onnx/run_module.h"

namespace pipec {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

std::string Refusal(const std::string& text) {
  auto module = TryImport(text);
  return module.ok() ? "imported" : std::string(module.status().message());
}

TEST(Normalize, SoftmaxWasOverAllAxesFromOneOn) {
  auto module = Import(Text("g (float[1,2,2] x) => (y) { y = Softmax(x) }", 11));
  const double sum = std::exp(0.25) + std::exp(0.5) + std::exp(0.75) + std::exp(1);
  const std::vector<float> y = RunModule(*module);
  ASSERT_EQ(y.size(), 4);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], std::exp((i + 1) / 4.0) / sum, 1e-6) << i;
  EXPECT_EQ(module->graph.outputs[0]->type.shape, (Shape{1, 2, 2}));
}

TEST(Normalize, SecondOperandsWereBroadcastAtAnAxis) {
  auto module =
      Import(Text("g (float[1,2,2] x, float[2] b) => (y) { y = Add<broadcast = 1, axis = 1>(x, b) }", 6));
  EXPECT_EQ(RunModule(*module), (std::vector<float>{0.5, 0.75, 1.25, 1.5}));
  EXPECT_THAT(
      Refusal(Text("g (float[2,3] x, float[3] b) => (y) { y = Add<broadcast = 1, axis = 2>(x, b) }", 6)),
      HasSubstr("broadcast of float32[3] at axis 2 of float32[2,3]"));
}

TEST(Normalize, ASlopeForEachChannelLayAlongThem) {
  auto module =
      Import(Text("g (float[1,2,2] x) => (y) <float[2] s = {2, 4}> { n = Neg(x) y = PRelu(n, s) }", 6),
             {.evaluate = Evaluate});
  EXPECT_EQ(RunModule(*module), (std::vector<float>{-0.5, -1, -3, -4}));
}

TEST(Normalize, AClipWithoutBoundsKeepsInfinitiesOut) {
  auto module = Import(Text("g () => (y) <float[3] x = {inf, -inf, 2}> { y = Clip(x) }", 6));
  constexpr float kLargest = std::numeric_limits<float>::max();
  EXPECT_EQ(RunModule(*module), (std::vector<float>{kLargest, -kLargest, 2}));
}

// x is 1/4, 2/4 in the first sample and 3/4, 4/4 in the second; one value a channel. Means 1/2 and 3/4,
// variances 1/16.
constexpr char kTrainingForm[] = R"(
  g (float[2,2,1] x) => (y, m, v, sm, sv)
    <float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] m0 = {0, 0}, float[2] v0 = {1, 1}> {
      y, m, v, sm, sv = BatchNormalization<epsilon = 0.0, momentum = 0.5>(x, s, b, m0, v0)
    })";

TEST(Normalize, ABatchNormalizationWithFiveResultsTrained) {
  auto module = Import(Text(kTrainingForm, 9));
  const std::vector<float> wanted[] = {
      {-1, -1, 1, 3}, {0.25, 0.375}, {0.53125, 0.53125}, {0.5, 0.75}, {0.0625, 0.0625}};
  for (int k = 0; k < 5; ++k) {
    EXPECT_THAT(RunModule(*module, k), Pointwise(FloatNear(1e-6), wanted[k])) << k;
  }
}

TEST(Normalize, ABatchNormalizationOfEveryPlaceTrained) {
  auto module = Import(Text(R"(
    g (float[2,2,1] x) => (y, m, v, sm, sv)
      <float[2,1] s = {1, 2}, float[2,1] b = {0, 1}, float[2,1] m0 = {0, 0}, float[2,1] v0 = {1, 1}> {
        y, m, v, sm, sv = BatchNormalization<spatial = 0, epsilon = 0.0, momentum = 0.5>(x, s, b, m0, v0)
      })",
                            7));
  EXPECT_THAT(RunModule(*module, 0), Pointwise(FloatNear(1e-6), {-1.0f, -1.0f, 1.0f, 3.0f}));
  EXPECT_THAT(RunModule(*module, 4), Pointwise(FloatNear(1e-6), {0.0625f, 0.0625f}));
  EXPECT_EQ(module->graph.outputs[0]->type.shape, (Shape{2, 2, 1}));
  for (int k = 1; k < 5; ++k) EXPECT_EQ(module->graph.outputs[k]->type.shape, (Shape{2, 1})) << k;
}

// Two channels a group, all of one value a group: the result is the bias of the group.
TEST(Normalize, AGroupNormalizationHadOneScaleAndBiasAGroup) {
  auto module = Import(Text(R"(
    g (float[1,1,2] x) => (y) <float[2] s = {1, 2}, float[2] b = {0.5, -1}, int64[3] w = {1, 4, 2}> {
      h = Expand(x, w)
      y = GroupNormalization<num_groups = 2, epsilon = 0.0>(h, s, b)
    })",
                            18),
                       {.evaluate = Evaluate});
  // 1/4 and 2/4 in every channel: one deviation below and above the mean.
  EXPECT_THAT(RunModule(*module),
              Pointwise(FloatNear(1e-5), {-0.5f, 1.5f, -0.5f, 1.5f, -3.0f, 1.0f, -3.0f, 1.0f}));
  EXPECT_THAT(
      Refusal(Text(
          "g (float[1,3,2] x, float[2] s) => (y) { y = GroupNormalization<num_groups = 2>(x, s, s) }", 18)),
      HasSubstr("not a multiple of 2 groups"));
  EXPECT_THAT(
      Refusal(Text(
          "g (float[1,4,2] x, float[4] s) => (y) { y = GroupNormalization<num_groups = 2>(x, s, s) }", 20)),
      HasSubstr("wanted one value a group, [2]"));
}

TEST(Normalize, TheMaskOfADropoutHadTheTypeOfItsData) {
  for (int opset : {7, 10}) {
    auto module = Import(Text("g (float[2] x) => (y, mask) { y, mask = Dropout<ratio = 0.25>(x) }", opset));
    const Node* dropout = module->graph.outputs[0]->producer();
    EXPECT_TRUE(dropout->Is("Dropout"));
    EXPECT_EQ(*ReadData(*dropout->input(1)), std::string("\0\0\x80\x3e", 4));  // 0.25
    EXPECT_EQ(module->graph.outputs[1]->type.dtype, opset < 10 ? DType::kFloat32 : DType::kBool);
    EXPECT_TRUE(module->graph.outputs[1]->producer()->Is(opset < 10 ? "Cast" : "Dropout"));
  }
}

TEST(Normalize, OldAttributesThatSayNothingGo) {
  auto joined = Import(Text("g (float[2,3] x) => (y) { y = Concat(x, x) }", 1));
  EXPECT_EQ(joined->graph.outputs[0]->type.shape, (Shape{2, 6}));
  auto lstm = Import(Text(R"(
    g (float[3,1,2] x, float[1,16,2] w, float[1,16,4] r) => (y) {
      y = LSTM<hidden_size = 4, output_sequence = 1>(x, w, r)
    })",
                          6));
  EXPECT_EQ(lstm->graph.outputs[0]->type.shape, (Shape{3, 1, 1, 4}));
  EXPECT_FALSE(lstm->graph.last_node()->attributes.Has("output_sequence"));
}

TEST(Normalize, WhatHasNoCounterpartIsRefusedByName) {
  EXPECT_THAT(Refusal(Text("g (float[2,3] x) => (y, z) { y, z = Split<axis = 1>(x) }", 11)),
              HasSubstr("axis 1 of float32[2,3] is not a multiple of 2 equal parts"));
  EXPECT_THAT(Refusal(Text(R"(g (float[1,1,2,2] x) => (y) <float[0] r = {}, float[4] s = {1, 1, 2, 2}> {
                y = Resize<coordinate_transformation_mode = "tf_half_pixel_for_nn">(x, r, s)
              })",
                           11)),
              HasSubstr("tf_half_pixel_for_nn of opset 11 is not supported"));
  EXPECT_THAT(Refusal(Text("g (float[1,1,2,2] x, float[4] s) => (y) { y = Resize(x, s) }", 10)),
              HasSubstr("scales that are not constant of opset 10 is not supported"));
  EXPECT_THAT(Refusal(Text("g (int64[2] x) => (y) { y = Erf(x) }", 9)),
              HasSubstr("Erf (int64[2]) does not take int64"));
  EXPECT_THAT(Refusal(Text("g (float[1,1,2,2] x, float[4] s) => (y) { y = Upsample(x, s) }", 10)),
              HasSubstr("'Upsample' has been deprecated since version 10"));
  EXPECT_THAT(Refusal(Text("g (float[2] x) => (y) { y = Softmax(x) }", 11)),
              HasSubstr("axis 1 of float32[2]"));
}

// Two samples, three classes: -log softmax by hand.
TEST(Normalize, CrossEntropyMeanIsASumDividedByItsWeight) {
  auto module = Import(Text(R"(g (float[2,3] x) => (loss, p) <int64[2] labels = {2, 0}> {
        loss, p = SoftmaxCrossEntropyLoss(x, labels)
      })"));
  const std::vector<float> loss = RunModule(*module);
  ASSERT_EQ(loss.size(), 1);
  const double norm = std::log(std::exp(-0.5) + std::exp(-0.25) + 1);
  EXPECT_NEAR(loss[0], (norm + norm + 0.5) / 2, 1e-6);
  EXPECT_TRUE(module->graph.outputs[0]->producer()->Is("Div"));
  EXPECT_TRUE(module->graph.outputs[1]->producer()->Is("LogSoftmax"));
}

TEST(Export, IsValidOnnxThatComputesTheSame) {
  auto module = Import(
      Text(R"(g (float[2,3] x) => (loss, y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}, int64[2] labels = {2, 0}> {
        y = MatMul(x, w)
        loss = SoftmaxCrossEntropyLoss(y, labels)
      })"));
  auto bytes = ExportModule(*module, {});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*bytes));
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  auto again = ImportModel(WriteFile("again.onnx", *bytes), {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(RunModule(**again), RunModule(*module));
}

TEST(Export, StagesAreFunctions) {
  auto module = Import(Text("g (float[2] x) => (y) <float[2] w = {1, 2}> { h = Add(x, w) y = Relu(h) }"));
  module->level = Level::kStaged;
  module->graph.first_node()->stage = 0;
  module->graph.last_node()->stage = 1;
  auto bytes = ExportModule(*module, {});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*bytes));
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_EQ(model.functions_size(), 2);
  auto again = ImportModel(WriteFile("again.onnx", *bytes), {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(RunModule(**again), (std::vector<float>{1.25, 2.5}));
}

}  // namespace
}  // namespace pipec
