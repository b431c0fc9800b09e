#include "compiler/cost/measured_costs.h"

#include "absl/strings/str_replace.h"
#include "compiler/cost/node_cost.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/cost_key.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

constexpr char kProfile[] =
    R"({"pipec_profile": 1, "device": "cpu", "threads": 1, "ranks": 2, "action_seconds": 0.25,
  "nodes": [{"key": "Add(float32[4],float32[4])->float32[4]", "seconds": 2, "runs": 1},
            {"key": "Add(float32[4],float32[4])->float32[4]", "seconds": 5, "runs": 2},
            {"key": "Relu(float32[4])->float32[4]", "seconds": 0.5, "runs": 3}],
  "messages": [{"bytes": 100, "seconds": 3, "runs": 1}, {"bytes": 300, "seconds": 4, "runs": 1}]})";

std::string Refusal(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kProfile, {{from, to}});
  EXPECT_NE(text, kProfile);
  const auto status = ParseProfile(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(CostKey, SaysWhatTheTimeDependsOn) {
  Attributes attributes;
  attributes.Set("pads", std::vector<int64_t>{0, 1});
  attributes.Set("axis", int64_t{-1});
  attributes.Set("mode", std::string("same"));
  const TensorType big{DType::kFloat32, {2, 3}}, small{DType::kInt64, {}};
  const std::string key = CostKey("ai.pipec", "Op", attributes, {big, {}, small}, {small});
  EXPECT_EQ(key, "ai.pipec.Op[axis=-1,mode=same,pads=0:1](float32[2,3],-,int64[])->int64[]");
  Attributes same = attributes;
  same.Set("key", int64_t{17});
  same.Set("parameter", int64_t{3});
  same.Set("epsilon", 1e-5f);
  EXPECT_EQ(CostKey("ai.pipec", "Op", same, {big, {}, small}, {small}), key);
  Attributes other = attributes;
  other.Set("axis", int64_t{0});
  EXPECT_NE(CostKey("ai.pipec", "Op", other, {big, {}, small}, {small}), key);
  EXPECT_EQ(CostKey("", "Relu", {}, {big}, {big}), "Relu(float32[2,3])->float32[2,3]");
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
  EXPECT_THAT(Refusal("_profile\": 1", "_profile\": 2"), HasSubstr("version 2"));
  EXPECT_THAT(Refusal("\"cpu\"", "4"), HasSubstr("'device' is no text"));
  EXPECT_THAT(Refusal("\"ranks\": 2", "\"ranks\": 0"), HasSubstr("'ranks' is 0"));
  EXPECT_THAT(Refusal("\"action_seconds\": 0.25,", ""), HasSubstr("'action_seconds' is no number"));
  EXPECT_THAT(Refusal("\"seconds\": 0.5", "\"seconds\": -1"), HasSubstr("node 2: 'seconds' is -1"));
  EXPECT_THAT(Refusal("\"seconds\": 0.5", "\"seconds\": 1e9"), HasSubstr("node 2: 'seconds' is 1e+09"));
  EXPECT_THAT(Refusal("\"runs\": 3", "\"runs\": 0"), HasSubstr("node 2: 'runs' is 0"));
  EXPECT_THAT(Refusal("\"bytes\": 300", "\"byte\": 300"), HasSubstr("message 1: 'bytes' is no number"));
  EXPECT_THAT(Refusal("{\"key\": \"Relu(float32[4])->float32[4]\", \"seconds\": 0.5, \"runs\": 3}", "7"),
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
  const double modelled = NodeSeconds(unknown, cluster.devices[1]);
  EXPECT_EQ(TimeOf(known, cluster.devices[1]).origin, Origin::kModelled);
  EXPECT_EQ(ActionSeconds(cluster.devices[1]), 0);
  ASSERT_TRUE(UseProfile(*ParseProfile(kProfile), cluster).ok());
  EXPECT_EQ(TimeOf(known, cluster.devices[1]).origin, Origin::kMeasured);
  EXPECT_DOUBLE_EQ(NodeSeconds(known, cluster.devices[1]), 4);
  EXPECT_EQ(TimeOf(unknown, cluster.devices[1]).origin, Origin::kModelled);
  EXPECT_DOUBLE_EQ(NodeSeconds(unknown, cluster.devices[1]), modelled);
  EXPECT_EQ(ActionSeconds(cluster.devices[1]), 0.25);
  EXPECT_EQ(cluster.LinkBetween(0, 1).origin, Origin::kMeasured);
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
  EXPECT_EQ(cluster.LinkBetween(0, 2).origin, Origin::kMeasured);
  EXPECT_EQ(cluster.LinkBetween(0, 1).origin, Origin::kModelled);
  cluster.host_of = {0, 0, 1};
  cluster.network = {1, 2};
  EXPECT_EQ(cluster.LinkBetween(0, 2).origin, Origin::kModelled) << "nothing was measured between hosts";
}

TEST(FitLink, IsNeverFasterThanLight) {
  const Link modelled{1, 100};
  EXPECT_EQ(FitLink({}, modelled).origin, Origin::kModelled);
  // One size: the bandwidth is the modelled one, or less if that leaves nothing for the latency.
  const Link one = FitLink({{200, 5, 1}}, modelled);
  EXPECT_DOUBLE_EQ(one.latency_seconds, 3);
  EXPECT_DOUBLE_EQ(one.bytes_per_second, 100);
  const Link slow = FitLink({{200, 1, 1}}, modelled);
  EXPECT_DOUBLE_EQ(slow.latency_seconds, 0);
  EXPECT_DOUBLE_EQ(slow.bytes_per_second, 200);
  // More bytes in less time: bytes cost nothing.
  const Link noise = FitLink({{100, 3, 1}, {200, 1, 1}}, modelled);
  EXPECT_DOUBLE_EQ(MessageSeconds(1000, noise), 2);
  // A latency below 0.
  const Link steep = FitLink({{100, 1, 1}, {200, 3, 1}}, modelled);
  EXPECT_DOUBLE_EQ(steep.latency_seconds, 0);
  EXPECT_DOUBLE_EQ(MessageSeconds(150, steep), 2);
  // Runs weigh.
  const Link weighed = FitLink({{100, 1, 1}, {100, 4, 2}, {300, 5, 3}}, modelled);
  EXPECT_DOUBLE_EQ(MessageSeconds(100, weighed), 3);
  EXPECT_DOUBLE_EQ(MessageSeconds(300, weighed), 5);
}

}  // namespace
}  // namespace pipec
