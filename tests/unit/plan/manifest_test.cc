#include "runtime/plan/manifest.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

Manifest Example() {
  Manifest manifest;
  manifest.pipec_version = "0.1.0";
  manifest.model = "m \"quoted\"";
  manifest.mode = "train";
  manifest.schedule = "1f1b";
  manifest.optimizer = "adamw";
  manifest.ranks = 2;
  manifest.microbatches = 8;
  manifest.microbatch_size = 4;
  manifest.labels = "labels";
  manifest.inputs = {{"ids", {DType::kInt64, {4, 16}}, 0, 128}};
  manifest.outputs = {{"logits", {DType::kFloat32, {4, 16, 128}}, 0, 0}};
  manifest.parameters = {{"w", {DType::kFloat32, {3}}, "parameters/model.safetensors", 128},
                         {"e", {DType::kBFloat16, {7}}, "/data/weights.bin", 64, "fedcba9876543210", "w"}};
  manifest.messages = {{0, 1, 2500}, {1, 0, 1250}};
  manifest.files = {{"rank-000.plan", 12, "0123456789abcdef"}};
  manifest.links = {{"/data/weights.bin", 4096, 1'700'000'000'123'456'789}};
  return manifest;
}

TEST(Manifest, WhatIsWrittenIsRead) {
  const std::string json = ToJson(Example());
  const auto read = ParseManifest(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read), json);
  EXPECT_EQ(read->batch(), 32);
  EXPECT_EQ(read->inputs[0].bound, 128);
  EXPECT_EQ(read->inputs[0].type, (TensorType{DType::kInt64, {4, 16}}));
}

TEST(Manifest, RefusesWhatIsNoManifest) {
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {"\"format\": 2", "\"format\": 1", "'format'"},
      {"\"ranks\": 2,", "", "lacks 'ranks'"},
      {"\"ranks\": 2", "\"ranks\": 0", "'ranks'"},
      {"\"ranks\": 2", "\"ranks\": 1e30", "'ranks'"},
      {"\"ranks\": 2", "\"ranks\": 18446744073709551615", "'ranks'"},
      {"\"ranks\": 2", "\"ranks\": \"2\"", "'ranks'"},
      {"\"ranks\": 2", "\"ranks\": 2, \"surplus\": 1", "surplus"},
      {"\"train\"", "\"tarin\"", "'mode'"},
      {"\"to_stage\": 1", "\"to_stage\": 2", "to stage 2 of 2"},
      {"\"int64\"", "\"int65\"", "dtype"},
      {"\"batch_axis\": 0", "\"batch_axis\": 5", "'batch_axis'"},
      {"rank-000.plan", "../rank-000.plan", "leaves the plan"},
      {"parameters/model", "../model", "leaves the plan"},
      {"\"shape\": [\n    4", "\"shape\": [\n    -4", "shape"},
      {"\"path\": \"/data", "\"path\": \"data", "not absolute"},
      {"\"xxh3\": \"fedcba9876543210\"", "\"surplus\": 1", "lacks 'xxh3'"},
      {"{", "[", "not a JSON object"},
  };
  for (const Case& c : cases) {
    std::string json = ToJson(Example());
    const size_t at = json.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    json.replace(at, std::string(c.from).size(), c.to);
    const auto read = ParseManifest(json);
    EXPECT_FALSE(read.ok()) << c.to;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(c.message)) << c.to;
  }
  const std::string json = ToJson(Example());
  for (size_t length = 0; length + 1 < json.size(); ++length)
    EXPECT_FALSE(ParseManifest(json.substr(0, length)).ok());
}

Manifest Counting() {
  Manifest manifest = Example();
  manifest.mode = "infer";
  manifest.microbatches = 1;
  manifest.outputs = {{"y", {DType::kInt64, {2, 6}}, -1, 0}, {"y.count", {DType::kInt64, {}}, -1, 0}};
  manifest.counts = {{"y", 1, "y.count"}};
  return manifest;
}

TEST(Manifest, CountsOfOutputs) {
  const std::string json = ToJson(Counting());
  const auto read = ParseManifest(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read), json);
  EXPECT_EQ(read->counts[0].output, "y");
  EXPECT_EQ(read->counts[0].axis, 1);
  EXPECT_EQ(read->counts[0].count, "y.count");
}

// Not edited, but written wrong: the hash is right.
TEST(Manifest, RefusesCountsThatAreNone) {
  struct Case {
    void (*spoil)(Manifest& manifest);
    const char* message;
  };
  const Case cases[] = {
      {[](Manifest& m) { m.counts[0].output = "z"; }, "no such output"},
      {[](Manifest& m) { m.counts[0].count = "z"; }, "none that counts"},
      {[](Manifest& m) { m.counts[0].count = "y"; }, "no int64 scalar"},
      {[](Manifest& m) { m.outputs[1].type.dtype = DType::kInt32; }, "no int64 scalar"},
      {[](Manifest& m) { m.outputs[1].type.shape = {1}; }, "no int64 scalar"},
      {[](Manifest& m) { m.counts[0].axis = 2; }, "no such axis"},
      {[](Manifest& m) { m.counts[0].axis = -1; }, "'axis'"},
      {[](Manifest& m) { m.counts.push_back(m.counts[0]); }, "counted twice"},
      {[](Manifest& m) { m.microbatches = 2; }, "one microbatch"},
      {[](Manifest& m) { m.replicas = 2; }, "one microbatch"},
      {[](Manifest& m) { m.mode = "train"; }, "mode infer"},
  };
  for (const Case& c : cases) {
    Manifest manifest = Counting();
    c.spoil(manifest);
    const auto read = ParseManifest(ToJson(manifest));
    EXPECT_FALSE(read.ok()) << c.message;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(c.message));
  }
}

// w + a b, where w is [2, 3]; the transpose of that where it is [3, 2].
Manifest Adapted(bool transposed) {
  Manifest manifest = Example();
  const auto parameter = [&](const char* name, Shape shape) {
    manifest.parameters.push_back(
        {name, {DType::kFloat32, std::move(shape)}, "parameters/model.safetensors", 256});
  };
  parameter("matrix", transposed ? Shape{3, 2} : Shape{2, 3});
  parameter("a", {2, 1});
  parameter("b", {1, 3});
  manifest.low_rank = {{"matrix", "a", "b", transposed}};
  return manifest;
}

TEST(Manifest, FactorsOfLowRank) {
  for (bool transposed : {false, true}) {
    const std::string json = ToJson(Adapted(transposed));
    const auto read = ParseManifest(json);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(ToJson(*read), json);
    EXPECT_EQ(read->low_rank[0].transposed, transposed);
  }
  void (*const spoils[])(ManifestLowRank&) = {[](ManifestLowRank& row) { row.a = "none"; },
                                              [](ManifestLowRank& row) { row.weight = "w"; },
                                              [](ManifestLowRank& row) { std::swap(row.a, row.b); },
                                              [](ManifestLowRank& row) { row.transposed = true; }};
  for (const auto spoil : spoils) {
    Manifest manifest = Adapted(false);
    spoil(manifest.low_rank[0]);
    const auto read = ParseManifest(ToJson(manifest));
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("does not fit"));
  }
}

}  // namespace
}  // namespace pipec
