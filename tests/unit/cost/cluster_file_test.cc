#include "compiler/cost/cluster_file.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTwoHosts[] = R"({
  "source": "a test",
  "hosts": [
    {"name": "a", "devices": [{"profile": "h200", "count": 2}, {"profile": "v100", "memory_bytes": 16e9}],
     "pairs": [{"devices": [0, 2], "latency_seconds": 0.5, "bytes_per_second": 10}]},
    {"name": "b", "devices": [{"name": "own", "flops_per_second": 1e12, "bytes_per_second": 2e11, "launch_seconds": 0,
                               "memory_bytes": 8000000000, "count": 2}],
     "link": {"latency_seconds": 1e-5, "bytes_per_second": 3e9, "source": "measured"}},
    {"name": "c", "devices": [{"profile": "v100"}]}
  ],
  "link": {"latency_seconds": 2e-5, "bytes_per_second": 1e9},
  "pairs": [{"hosts": ["c", "a"], "latency_seconds": 0, "bytes_per_second": 7}]
})";

TEST(ClusterFile, IsRead) {
  const absl::StatusOr<Cluster> read = ParseCluster(kTwoHosts);
  ASSERT_EQ(read.status(), absl::OkStatus());
  const Cluster& cluster = *read;
  ASSERT_EQ(cluster.devices.size(), 6);
  EXPECT_THAT(cluster.host_of, ElementsAre(0, 0, 0, 1, 1, 2));
  EXPECT_EQ(cluster.DeviceNames(), "2 x h200, 2 x v100, 2 x own");
  EXPECT_EQ(cluster.devices[1].flops_per_second, FindDevice("h200")->flops_per_second);
  EXPECT_EQ(cluster.devices[1].memory_bytes, 141'000'000'000);
  EXPECT_EQ(cluster.devices[2].memory_bytes, 16'000'000'000);
  EXPECT_EQ(cluster.devices[5].memory_bytes, 32'000'000'000);
  EXPECT_EQ(cluster.devices[4].flops_per_second, 1e12);
  EXPECT_EQ(cluster.devices[4].bytes_per_second, 2e11);
}

TEST(ClusterFile, EachPairHasItsLink) {
  const Cluster cluster = *ParseCluster(kTwoHosts);
  const auto rate = [&](int a, int b) {
    EXPECT_EQ(cluster.LinkBetween(a, b).bytes_per_second, cluster.LinkBetween(b, a).bytes_per_second);
    return cluster.LinkBetween(b, a).bytes_per_second;
  };
  EXPECT_EQ(rate(0, 1), 450e9) << "that of h200";
  EXPECT_EQ(rate(1, 2), 150e9) << "the slower of h200's and v100's";
  EXPECT_EQ(rate(0, 2), 10) << "their own";
  EXPECT_EQ(rate(3, 4), 3e9) << "their host's";
  EXPECT_EQ(rate(0, 3), 1e9) << "that between hosts";
  EXPECT_EQ(rate(1, 5), 7) << "that of these two hosts";
  EXPECT_EQ(rate(3, 5), 1e9);
  EXPECT_EQ(cluster.LinkBetween(4, 3).latency_seconds, 1e-5);
}

TEST(ClusterFile, TheFirstDevicesAreTaken) {
  const Cluster two = *FirstDevices(*ParseCluster(kTwoHosts), 2);
  EXPECT_EQ(two.DeviceNames(), "h200");
  EXPECT_EQ(two.Links().size(), 1) << "none of those that nobody uses";
  EXPECT_EQ(FirstDevices(*ParseCluster(kTwoHosts), 6)->devices.size(), 6);
  EXPECT_EQ(FirstDevices(*ParseCluster(kTwoHosts), 7).status().message(),
            "has 6 devices, 7 ranks need as many; --stages=6 fits");
}

// What the reader says of the text with one place changed.
std::string Refusal(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kTwoHosts, {{from, to}});
  EXPECT_NE(text, kTwoHosts) << from;
  const absl::Status status = ParseCluster(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << from << " -> " << to;
  return std::string(status.message());
}

TEST(ClusterFile, WhatIsNoJsonIsRefusedWithItsPlace) {
  for (const char* text : {"", "{", "[1,", "{\"hosts\": [}", "nonsense", "{} {}", "\xff", "{\"a\": 1e999}"})
    EXPECT_THAT(std::string(ParseCluster(text).status().message()), HasSubstr("is no JSON: ")) << text;
  EXPECT_THAT(Refusal("\"devices\": [{\"profile\": \"h200\"", "\"devices\": [{\"profile\" \"h200\""),
              HasSubstr("line 4"));
  EXPECT_THAT(
      std::string(ParseCluster(std::string(100000, '[') + std::string(100000, ']')).status().message()),
      HasSubstr("nested too deeply"));
  EXPECT_THAT(Refusal("\"count\": 2}, {", "\"count\": 2, \"count\": 3}, {"),
              HasSubstr("the field 'count' twice"));
}

TEST(ClusterFile, UnknownFieldsNameTheNearest) {
  EXPECT_THAT(Refusal("\"hosts\": [\n", "\"host\": [\n"),
              HasSubstr("$ has the unknown field \"host\"; the nearest is hosts"));
  EXPECT_THAT(Refusal("\"count\": 2}, {", "\"cout\": 2}, {"),
              HasSubstr("$.hosts[0].devices[0] has the unknown field \"cout\"; the nearest is count, known "
                        "are profile, name"));
  EXPECT_THAT(Refusal("\"memory_bytes\": 16e9", "\"memory_byte\": 16e9"),
              HasSubstr("$.hosts[0].devices[1] has"));
  EXPECT_THAT(Refusal("\"latency_seconds\": 1e-5", "\"latency\": 1e-5"),
              HasSubstr("$.hosts[1].link has the unknown field \"latency\"; the nearest is latency_seconds"));
  EXPECT_THAT(Refusal("\"devices\": [0, 2]", "\"hosts\": [0, 2]"),
              HasSubstr("$.hosts[0].pairs[0] has the unknown field"));
  EXPECT_THAT(Refusal("\"hosts\": [\"c\"", "\"Hosts\": [\"c\""),
              HasSubstr("$.pairs[0] has the unknown field"));
}

TEST(ClusterFile, WrongTypes) {
  for (const char* text : {"[]", "3", "null", "\"x\""})
    EXPECT_THAT(std::string(ParseCluster(text).status().message()),
                HasSubstr(absl::StrCat("$ is ", text, ", not an object")));
  EXPECT_THAT(std::string(ParseCluster("{\"hosts\": {}}").status().message()),
              HasSubstr("$.hosts is {}, not a list"));
  EXPECT_THAT(std::string(ParseCluster("{\"hosts\": []}").status().message()),
              HasSubstr("$.hosts is [], which is empty"));
  EXPECT_THAT(std::string(ParseCluster("{\"hosts\": [7]}").status().message()),
              HasSubstr("$.hosts[0] is 7, not an object"));
  EXPECT_THAT(Refusal("\"name\": \"a\"", "\"name\": 1"), HasSubstr("$.hosts[0].name is 1, not a text"));
  for (const char* character : {"\\n", "\\u001b", "\\u007f", "\\u009b"}) {
    EXPECT_THAT(Refusal("\"name\": \"a\"", absl::StrCat("\"name\": \"a", character, "[2K\"")),
                HasSubstr("which has control characters"));
  }
  EXPECT_THAT(Refusal("\"name\": \"a\"", "\"name\": \"\""),
              HasSubstr("$.hosts[0].name is \"\", which is empty"));
  EXPECT_THAT(Refusal("16e9", "\"16 GB\""),
              HasSubstr("$.hosts[0].devices[1].memory_bytes is \"16 GB\", not a number"));
  EXPECT_THAT(Refusal("16e9", "true"), HasSubstr("is true, not a number"));
  EXPECT_THAT(Refusal("16e9", "null"), HasSubstr("is null, not a number"));
  EXPECT_THAT(Refusal("{\"latency_seconds\": 2e-5, \"bytes_per_second\": 1e9}", "1e9"),
              HasSubstr("$.link is 1000000000.0, not an object"));
  EXPECT_THAT(Refusal("{\"latency_seconds\": 2e-5, \"bytes_per_second\": 1e9}",
                      absl::StrCat("\"", std::string(500, 'x'), "\"")),
              HasSubstr("xxx..., not an object"));
}

TEST(ClusterFile, NumbersOutOfRange) {
  EXPECT_THAT(Refusal("16e9", "0"), HasSubstr("$.hosts[0].devices[1].memory_bytes is 0, not between 1 and"));
  EXPECT_THAT(Refusal("16e9", "-5"), HasSubstr("is -5, not between"));
  EXPECT_THAT(Refusal("16e9", "1e30"), HasSubstr("is 1e+30, not between"));
  EXPECT_THAT(Refusal("16e9", "1.5"), HasSubstr("is 1.5, not a whole number"));
  EXPECT_THAT(Refusal("\"count\": 2}, {", "\"count\": 0}, {"), HasSubstr("$.hosts[0].devices[0].count is 0"));
  EXPECT_THAT(Refusal("\"count\": 2}, {", "\"count\": 65537}, {"), HasSubstr("count is 65537"));
  EXPECT_THAT(Refusal("\"count\": 2}, {", "\"count\": 65536}, {"), HasSubstr("too many devices"));
  EXPECT_THAT(Refusal("1e12", "0"), HasSubstr("$.hosts[1].devices[0].flops_per_second is 0"));
  EXPECT_THAT(Refusal("2e11", "-2e11"), HasSubstr("$.hosts[1].devices[0].bytes_per_second is -2"));
  EXPECT_THAT(Refusal("\"launch_seconds\": 0", "\"launch_seconds\": -1"), HasSubstr("launch_seconds is -1"));
  EXPECT_THAT(Refusal("2e-5", "-1"), HasSubstr("$.link.latency_seconds is -1"));
  EXPECT_THAT(Refusal("3e9", "0"), HasSubstr("$.hosts[1].link.bytes_per_second is 0"));
}

TEST(ClusterFile, WhatIsMissing) {
  EXPECT_THAT(std::string(ParseCluster("{}").status().message()), HasSubstr("$.hosts is missing"));
  EXPECT_THAT(Refusal("\"name\": \"a\", ", ""), HasSubstr("$.hosts[0].name is missing"));
  EXPECT_THAT(Refusal("\"name\": \"own\", ", ""), HasSubstr("$.hosts[1].devices[0].name is missing"));
  EXPECT_THAT(Refusal("\"flops_per_second\": 1e12, ", ""),
              HasSubstr("$.hosts[1].devices[0].flops_per_second is missing"));
  EXPECT_THAT(Refusal("\"launch_seconds\": 0,", ""), HasSubstr("launch_seconds is missing"));
  EXPECT_THAT(Refusal("\"memory_bytes\": 8000000000, ", ""),
              HasSubstr("$.hosts[1].devices[0].memory_bytes is missing"));
  EXPECT_THAT(Refusal("{\"profile\": \"v100\"}", "{\"profile\": \"cpu\"}"),
              HasSubstr("$.hosts[2].devices[0].memory_bytes is missing"))
      << "that of this machine says nothing of another";
  EXPECT_THAT(Refusal("\"link\": {\"latency_seconds\": 2e-5, \"bytes_per_second\": 1e9},", ""),
              HasSubstr("$.link is missing"));
  EXPECT_THAT(Refusal(",\n     \"link\": {\"latency_seconds\": 1e-5, \"bytes_per_second\": 3e9, \"source\": "
                      "\"measured\"}",
                      ""),
              HasSubstr("$.hosts[1].link is missing"));
  EXPECT_THAT(Refusal(", \"bytes_per_second\": 7", ""), HasSubstr("$.pairs[0].bytes_per_second is missing"));
}

TEST(ClusterFile, NamesAndPairs) {
  EXPECT_THAT(Refusal("\"name\": \"c\"", "\"name\": \"b\""),
              HasSubstr("$.hosts[2].name is \"b\", which another host has too"));
  EXPECT_THAT(Refusal("{\"profile\": \"v100\"}", "{\"profile\": \"v100\", \"flops_per_second\": 1e12}"),
              HasSubstr("$.hosts[2].devices[0] is called 'v100', as devices of other rates are"));
  EXPECT_THAT(
      Refusal("{\"profile\": \"v100\"}", "{\"profile\": \"v200\"}"),
      HasSubstr("$.hosts[2].devices[0].profile is \"v200\", unknown device v200, known are cpu, v100"));
  EXPECT_THAT(Refusal("\"devices\": [0, 2]", "\"devices\": [0, 3]"),
              HasSubstr("$.hosts[0].pairs[0].devices is [0,3], not two of the places 0 to 2 of its devices"));
  for (const char* none : {"[0, 0]", "[-1, 0]", "[0.5, 1]", "[\"0\", 1]"})
    EXPECT_THAT(Refusal("\"devices\": [0, 2]", absl::StrCat("\"devices\": ", none)),
                HasSubstr("not two of the places"));
  EXPECT_THAT(Refusal("\"devices\": [0, 2]", "\"devices\": [0]"), HasSubstr("not a list of two"));
  EXPECT_THAT(Refusal("[\"c\", \"a\"]", "[\"c\", \"d\"]"),
              HasSubstr("$.pairs[0].hosts is [\"c\",\"d\"], not two of the hosts' names"));
  EXPECT_THAT(Refusal("[\"c\", \"a\"]", "[\"c\", \"c\"]"), HasSubstr("not two of the hosts' names"));
  EXPECT_THAT(Refusal("[\"c\", \"a\"]", "[\"c\", 0]"), HasSubstr("not two of the hosts' names"));
  EXPECT_THAT(Refusal("\"bytes_per_second\": 7}",
                      "\"bytes_per_second\": 7}, {\"hosts\": [\"a\", \"c\"], "
                      "\"latency_seconds\": 0, \"bytes_per_second\": 8}"),
              HasSubstr("$.pairs[1].hosts is [\"a\",\"c\"], which stands twice"));
}

}  // namespace
}  // namespace pipec
