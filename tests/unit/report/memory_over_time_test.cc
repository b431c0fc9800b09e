// One rank by hand: two microbatches, F 1 s and B 2 s each, all forwards first.
#include "compiler/report/memory_over_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pipec {
namespace {

using K = ActionKind;

class MemoryOverTimeTest : public testing::Test {
 protected:
  MemoryOverTimeTest() {
    module_.stages = {{0, {1, 1, 1}}, {1, {1, 1, 1}}};
    module_.schedule.shape = {2, 1, 2};
    module_.simulation.makespan = 10;
    module_.simulation.ranks = {{{{K::kF, 0, 0}, 0, 1},
                                 {{K::kSendF, 0, 0, 1}, 1, 1.5},
                                 {{K::kF, 0, 1}, 1, 2},
                                 {{K::kSendF, 0, 1, 1}, 2, 2.5},
                                 {{K::kB, 0, 0}, 5, 7},
                                 {{K::kB, 0, 1}, 8, 10}},
                                {}};
    module_.memory.resize(2);
    module_.memory[0].arena_bytes = 1024;
    module_.memory[0].slot_classes.resize(1);
  }

  Value* AddBuffer(const char* name, BufferKind kind, int64_t bytes, bool slots) {
    Value* value = module_.graph.AddValue(ValueKind::kInput, name, {DType::kFloat32, {bytes / 4}});
    RankMemory& memory = module_.memory[0];
    memory.locations[value] = {static_cast<int>(memory.buffers.size()), 0};
    memory.buffers.push_back({.name = name, .kind = kind, .bytes = bytes, .slot_class = slots ? 0 : -1});
    return value;
  }

  Node* Reads(std::vector<Value*> inputs) {
    return module_.graph.AddNode(
        {.op = "Sum", .inputs = std::move(inputs), .outputs = {{DType::kFloat32, {1}}}});
  }

  std::vector<std::pair<double, int64_t>> Points() {
    std::vector<std::pair<double, int64_t>> points;
    const MemoryCurve curve = MemoryOverTime(module_)[0];
    for (const MemoryPoint& point : curve.points) points.emplace_back(point.seconds, point.bytes);
    return points;
  }

  Module module_;
};

TEST_F(MemoryOverTimeTest, WhatIsAlwaysThere) {
  AddBuffer("w", BufferKind::kParameter, 100, false);
  AddBuffer("g", BufferKind::kGradient, 64, false);
  AddBuffer("m", BufferKind::kOptimizerState, 64, false);
  AddBuffer("t", BufferKind::kTransient, 640, false);
  EXPECT_EQ(MemoryOverTime(module_)[0].always_bytes, 128 + 64 + 64)
      << "in the plan's strides; transients come and go";
  EXPECT_EQ(MemoryOverTime(module_)[0].reserved_bytes, 1024);
  EXPECT_THAT(Points(), testing::ElementsAre(std::pair(0.0, 256)));
}

TEST_F(MemoryOverTimeTest, AnActivationIsKeptFromItsForwardToTheEndOfItsBackward) {
  Value* kept = AddBuffer("a", BufferKind::kActivation, 64, true);
  module_.memory[0].programs = {{0, K::kF, {Reads({kept})}}, {0, K::kB, {Reads({kept})}}};
  EXPECT_THAT(Points(), testing::ElementsAre(std::pair(0.0, 64), std::pair(1.0, 128), std::pair(7.0, 64),
                                             std::pair(10.0, 0)));
}

TEST_F(MemoryOverTimeTest, WhatIsSentIsKeptUntilItHasArrived) {
  Value* sent = AddBuffer("s", BufferKind::kMessage, 64, true);
  module_.memory[0].programs = {{0, K::kF, {Reads({sent})}}};
  module_.messages = {{Reads({sent}), MessageKind::kActivation, 0, 1}};
  EXPECT_THAT(Points(), testing::ElementsAre(std::pair(0.0, 64), std::pair(1.0, 128), std::pair(1.5, 64),
                                             std::pair(2.5, 0)));
}

}  // namespace
}  // namespace pipec
