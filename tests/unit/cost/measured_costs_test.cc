#include "compiler/cost/measured_costs.h"

#include "absl/strings/str_replace.h"
#include "compiler/cost/node_cost.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

constexpr char kProfile[] =
    R"({"pipec_profile": 2, "device": "cpu", "threads": 1, "ranks": 2, "action_seconds": 0.25,
  "nodes": [{"key": "Add(float32[4],float32[4])->float32[4]", "flops": 4, "bytes": 48, "seconds": 2, "runs": 1},
            {"key": "Add(float32[4],float32[4])->float32[4]", "flops": 4, "bytes": 48, "seconds": 5, "runs": 2},
            {"key": "Relu(float32[4])->float32[4]", "flops": 8, "bytes": 32, "seconds": 0.5, "runs": 3}],
  "messages": [{"bytes": 100, "seconds": 3, "runs": 1}, {"bytes": 300, "seconds": 4, "runs": 1}]})";

std::string Refusal(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kProfile, {{from, to}});
  EXPECT_NE(text, kProfile);
  const auto status = ParseProfile(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(MeasuredCosts, AProfileIsRead) {
  const MeasuredCosts costs = *ParseProfile(kProfile);
  EXPECT_EQ(costs.device, "cpu");
  EXPECT_EQ(costs.threads, 1);
  EXPECT_EQ(costs.ranks, 2);
  EXPECT_EQ(costs.action_seconds, 0.25);
  EXPECT_EQ(costs.node_seconds.size(), 2u);
  EXPECT_DOUBLE_EQ(costs.node_seconds.at("Add(float32[4],float32[4])->float32[4]"), 4)
      << "the mean of three runs";
  EXPECT_EQ(costs.messages.size(), 2u);
}

TEST(MeasuredCosts, WhatIsNoProfileIsRefused) {
  for (const char* text : {"", "{", "[]", "3", "{\"nodes\": []}"})
    EXPECT_THAT(std::string(ParseProfile(text).status().message()), HasSubstr("not a profile")) << text;
  EXPECT_THAT(Refusal("_profile\": 2", "_profile\": 1"), HasSubstr("version 1"));
  EXPECT_THAT(Refusal("\"cpu\"", "4"), HasSubstr("'device' is no text"));
  EXPECT_THAT(Refusal("\"ranks\": 2", "\"ranks\": 0"), HasSubstr("'ranks' is 0"));
  EXPECT_THAT(Refusal("\"ranks\": 2", "\"ranks\": 2.5"), HasSubstr("'ranks' is 2.5, no whole number"));
  EXPECT_THAT(Refusal("\"threads\": 1", "\"threads\": 1.5"), HasSubstr("'threads' is 1.5, no whole number"));
  EXPECT_THAT(Refusal("\"cpu\"", "\"c\\u001bpu\""), HasSubstr("'device' has control characters"));
  EXPECT_THAT(Refusal("\"action_seconds\": 0.25,", ""), HasSubstr("'action_seconds' is no number"));
  EXPECT_THAT(Refusal("\"seconds\": 0.5", "\"seconds\": -1"), HasSubstr("node 2: 'seconds' is -1"));
  EXPECT_THAT(Refusal("\"seconds\": 0.5", "\"seconds\": 1e9"), HasSubstr("node 2: 'seconds' is 1e+09"));
  EXPECT_THAT(Refusal("\"runs\": 3", "\"runs\": 0"), HasSubstr("node 2: 'runs' is 0"));
  EXPECT_THAT(Refusal("\"flops\": 8", "\"flops\": -8"), HasSubstr("node 2: 'flops' is -8"));
  EXPECT_THAT(Refusal("\"bytes\": 32,", ""), HasSubstr("node 2: 'bytes' is no number"));
  EXPECT_THAT(Refusal("\"bytes\": 300", "\"byte\": 300"), HasSubstr("message 1: 'bytes' is no number"));
  EXPECT_THAT(Refusal("{\"key\": \"Relu(float32[4])->float32[4]\", \"flops\": 8, \"bytes\": 32, \"seconds\": "
                      "0.5, \"runs\": 3}",
                      "7"),
              HasSubstr("node 2: 'key' is no text"));
}

TEST(MeasuredCosts, ComeBeforeModelledOnes) {
  Cluster cluster = *MakeCluster("cpu", 2, 0);
  Graph graph;
  const TensorType four{DType::kFloat32, {4}}, five{DType::kFloat32, {5}};
  auto node = [&](const char* op, int operands, const TensorType& type) {
    std::vector<Value*> inputs;
    for (int k = 0; k < operands; ++k) inputs.push_back(graph.AddValue(ValueKind::kInput, "x", type));
    return graph.AddNode({.op = op, .inputs = inputs, .outputs = {type}});
  };
  const Node &known = *node("Add", 2, four), &unknown = *node("Add", 2, five);
  EXPECT_EQ(TimeOf(known, cluster.devices[1]).origin, Origin::kModelled);
  EXPECT_EQ(ActionSeconds(cluster.devices[1]), 0);
  ASSERT_TRUE(UseProfile(*ParseProfile(kProfile), cluster).ok());
  EXPECT_EQ(TimeOf(known, cluster.devices[1]).origin, Origin::kMeasured);
  EXPECT_DOUBLE_EQ(NodeSeconds(known, cluster.devices[1]), 4);
  // The node most alike takes 4 s for 48 bytes; in the law of all two nodes only bytes count.
  EXPECT_EQ(TimeOf(unknown, cluster.devices[1]).origin, Origin::kFitted);
  EXPECT_DOUBLE_EQ(NodeSeconds(unknown, cluster.devices[1]), 4 * 60.0 / 48);
  EXPECT_EQ(ActionSeconds(cluster.devices[1]), 0.25);
  EXPECT_EQ(cluster.LinkBetween(0, 1).origin, Origin::kFitted);
  // 100 bytes 3 s, 300 bytes 4 s.
  EXPECT_DOUBLE_EQ(MessageSeconds(200, cluster.LinkBetween(0, 1)), 3.5);
  Cluster other = *MakeCluster("h200", 2, 0);
  const auto status = UseProfile(*ParseProfile(kProfile), other);
  EXPECT_THAT(std::string(status.message()), HasSubstr("measured on cpu, the plan is for h200"));
}

TEST(MeasuredCosts, HoldForDevicesOfTheirName) {
  Cluster cluster = *MakeCluster("cpu", 3, 0);
  cluster.devices[1] = *FindDevice("v100");
  ASSERT_TRUE(UseProfile(*ParseProfile(kProfile), cluster).ok());
  EXPECT_TRUE(cluster.devices[0].measured && cluster.devices[2].measured);
  EXPECT_FALSE(cluster.devices[1].measured);
  EXPECT_EQ(cluster.LinkBetween(0, 2).origin, Origin::kFitted);
  EXPECT_EQ(cluster.LinkBetween(0, 1).origin, Origin::kModelled);
  cluster.host_of = {0, 0, 1};
  cluster.network = {1, 2};
  EXPECT_EQ(cluster.LinkBetween(0, 2).origin, Origin::kModelled) << "nothing was measured between hosts";
}

}  // namespace
}  // namespace pipec
