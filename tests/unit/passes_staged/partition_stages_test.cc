#include <gmock/gmock.h>

#include <map>

#include "runtime/base/least_memory.h"
#include "small_models.h"

namespace pipec {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

std::vector<int> LayersOfStages(const Module& module) {
  std::vector<int> layers(module.stages.size(), 0);
  for (const Node* node : module.graph.Nodes()) {
    if (node->kind == Kind::kF && node->Is("MatMul")) ++layers[node->stage];
  }
  return layers;
}

TEST(PartitionStages, EqualLayersAreSpreadEvenly) {
  auto module = Chain(42);
  ASSERT_EQ(Compile(*module, Context(16, 16), Level::kStaged), absl::OkStatus());
  EXPECT_THAT(LayersOfStages(*module), Each(AllOf(Ge(2), Le(3))));
  double slowest = 0;
  for (const Stage& stage : module->stages)
    slowest = std::max(slowest, stage.times.f + stage.times.i + stage.times.w);
  EXPECT_GE(slowest, 0);
  EXPECT_GT(module->partition_bound, 0);
}

TEST(PartitionStages, TooManyStagesNamesTheMostPossible) {
  auto module = Chain(42);
  const absl::Status status = Compile(*module, Context(500, 500), Level::kStaged);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("--stages=500"), HasSubstr("at most 8")));
}

TEST(PartitionStages, OneStageNeedsNoMessage) {
  auto module = Chain(3);
  ASSERT_EQ(Compile(*module, Context(1, 4), Level::kStaged), absl::OkStatus());
  EXPECT_TRUE(module->messages.empty());
}

TEST(PartitionStages, CutsWhereTheUserSays) {
  auto module = Chain(4);
  PassContext context = Context(3, 4);
  context.options.cut = {"y2", "h0"};
  ASSERT_EQ(Compile(*module, context, Level::kStaged), absl::OkStatus());
  std::map<std::string, int> stage;
  for (const Node* node : module->graph.Nodes()) stage[node->name()] = node->stage;
  EXPECT_EQ(stage["h0"], 0);
  EXPECT_EQ(stage["y0"], 1);
  EXPECT_EQ(stage["y2"], 1);
  EXPECT_EQ(stage["h3"], 2);
}

TEST(PartitionStages, RefusesACutThatIsNone) {
  for (const auto& [cut, fault] : std::map<std::string, std::string>{
           {"nowhere", "not a value"}, {"w1", "not a value"}, {"x", "not a value"}}) {
    auto module = Chain(4);
    PassContext context = Context(2, 4);
    context.options.cut = {cut};
    EXPECT_THAT(std::string(Compile(*module, context, Level::kStaged).message()), HasSubstr(fault)) << cut;
  }
  auto module = Chain(4);
  PassContext context = Context(3, 4);
  context.options.cut = {"y1"};
  EXPECT_THAT(std::string(Compile(*module, context, Level::kStaged).message()),
              HasSubstr("need 2 different values in --cut, got 1"));
}

TEST(PartitionStages, UnknownScheduleListsTheKnown) {
  auto module = Chain(4);
  EXPECT_THAT(std::string(Compile(*module, Context(2, 4, "1b1f"), Level::kStaged).message()),
              AllOf(HasSubstr("1f1b"), HasSubstr("gpipe")));
}

// A weight that is transposed for two products, far from both, costs neither a message nor a stage.
TEST(PartitionStages, WhatDependsOnParametersOnlyGoesWithItsConsumer) {
  Net net;
  Value* weight = net.Weight("w");
  Value* transposed = net.Emit("Transpose", {weight}, "t", weight->type);
  transposed->batch_axis = -1;
  Net* rest = &net;
  Value* h = rest->Emit("MatMul", {net.graph().FindValue("x"), net.Weight("v")}, "h");
  net.Emit("Relu", {h}, "r");
  net.Emit("MatMul", {net.last(), transposed}, "last");
  auto module = net.Finish();
  PassContext context = Context(2, 2);
  context.options.cut = {"r"};
  ASSERT_EQ(Compile(*module, context, Level::kStaged), absl::OkStatus());
  EXPECT_EQ(module->graph.FindValue("t")->producer()->stage, 1);
}

TEST(PartitionStages, TooLittleMemoryNamesWhatWouldDo) {
  auto module = Chain(8);
  PassContext context = Context(2, 4);
  context.options.cut_memory = {4096, 4096};
  const absl::Status status = Compile(*module, context, Level::kStaged);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(LeastMemory(status));
  const int64_t least = *LeastMemory(status);
  EXPECT_GT(least, 4096);
  module = Chain(8);
  context.options.cut_memory = {least, least};
  EXPECT_EQ(Compile(*module, context, Level::kStaged), absl::OkStatus());
}

}  // namespace
}  // namespace pipec
