#include "compiler/cost/cluster.h"
#include "compiler/cost/node_cost.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

TEST(Cluster, EveryProfileIsCompleteAndSaysWhereItComesFrom) {
  for (const DeviceProfile& profile : AllDeviceProfiles()) {
    EXPECT_GT(profile.flops_per_second, 0) << profile.name;
    EXPECT_GT(profile.bytes_per_second, 0) << profile.name;
    EXPECT_GT(profile.launch_seconds, 0) << profile.name;
    EXPECT_GT(profile.link.bytes_per_second, 0) << profile.name;
    EXPECT_FALSE(profile.source.empty()) << profile.name;
    const Cluster cluster = *MakeCluster(profile.name, 4, 0);
    ASSERT_EQ(cluster.devices.size(), 4) << profile.name;
    EXPECT_GT(cluster.devices[3].memory_bytes, 0) << profile.name;
  }
}

TEST(Cluster, CpuIsSharedByItsRanks) {
  const Cluster one = *MakeCluster("cpu", 1, 0), four = *MakeCluster("cpu", 4, 0);
  EXPECT_DOUBLE_EQ(one.devices[0].flops_per_second, 4 * four.devices[3].flops_per_second);
  EXPECT_EQ(one.devices[0].memory_bytes / 4, four.devices[0].memory_bytes);
  EXPECT_EQ(MakeCluster("h200", 4, 0)->devices[1].memory_bytes, 141'000'000'000);
  EXPECT_EQ(MakeCluster("cpu", 4, 1234)->devices[2].memory_bytes, 1234);
}

TEST(Cluster, UnknownDeviceListsTheKnown) {
  const auto status = MakeCluster("h20", 2, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const DeviceProfile& profile : AllDeviceProfiles()) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(profile.name));
  }
}

TEST(NodeCost, Roofline) {
  DeviceProfile device;
  device.flops_per_second = 1000;
  device.bytes_per_second = 100;
  device.launch_seconds = 0.5;
  Graph graph;
  auto add = [&](const char* op, std::vector<Shape> inputs, Shape output) {
    NodeSpec spec;
    spec.op = op;
    for (const Shape& shape : inputs) {
      spec.inputs.push_back(graph.AddValue(ValueKind::kInput, "x", {DType::kFloat32, shape}));
    }
    spec.outputs = {{DType::kFloat32, output}};
    return graph.AddNode(spec);
  };
  // 2 * 100 * 100 * 100 flops at 1,000 a second outweigh 4 * 30,000 bytes at 100.
  EXPECT_DOUBLE_EQ(NodeSeconds(*add("MatMul", {{100, 100}, {100, 100}}, {100, 100}), device), 0.5 + 2000);
  // An addition is bound by its 12 bytes an element.
  EXPECT_DOUBLE_EQ(NodeSeconds(*add("Add", {{100}, {100}}, {100}), device), 0.5 + 12);
  EXPECT_EQ(NodeSeconds(*add("Flatten", {{100}}, {1, 100}), device), 0);
  EXPECT_DOUBLE_EQ(MessageSeconds(1000, {0.25, 2000}), 0.75);
  EXPECT_EQ(MessageSeconds(0, {0.25, 2000}), 0);
}

}  // namespace
}  // namespace pipec
