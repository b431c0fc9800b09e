// Advice and the alternatives it compares with, by hand.
#include "compiler/report/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/report/two_ranks.h"

namespace pipec {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

DeviceProfile OneFlopASecond() {
  DeviceProfile device;
  device.name = "cpu";
  device.flops_per_second = 1;
  device.bytes_per_second = 1e30;
  device.link = {0.5, 100};
  return device;
}

Cluster WithMemory(int64_t bytes) {
  DeviceProfile device = OneFlopASecond();
  device.memory_bytes = bytes;
  return EqualDevices(device, 2);
}

// Two products of 2 x 8 x 4 and 2 x 4 x 4 multiplications, in float32.
class TwoProducts : public testing::Test {
 protected:
  TwoProducts() {
    FillTwoRanks(module_);
    for (const char* name : {"w0", "w1"})
      module_.training.parameters.push_back({module_.graph.FindValue(name)});
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<Buffer>& buffers = module_.memory[rank].buffers;
      buffers.push_back({rank ? "w1" : "w0", BufferKind::kParameter, rank ? 64 : 128});
      buffers.push_back({"shared", BufferKind::kConstant, 64});
      buffers.push_back({rank ? "r1" : "r0", BufferKind::kActivation, 64, -1, {0, 64}});
      module_.memory[rank].arena_bytes = rank ? 64 + 64 + 128 : 128 + 64 + 128;
    }
  }
  Module module_;
};

TEST_F(TwoProducts, Alternatives) {
  const std::vector<Alternative> others = Alternatives(module_, EqualDevices(OneFlopASecond(), 2));
  ASSERT_EQ(others.size(), 2);
  const double flops = 2 * 2 * 8 * 4 + 2 * 2 * 4 * 4;
  // Data: one of two microbatches each; the gradients are (32 + 16) * 4 bytes, of which each device sends them once
  // in two steps of half a second.
  EXPECT_EQ(others[0].name, "data parallel");
  EXPECT_NEAR(others[0].step_seconds, flops + 2 * 0.5 + 192 / 100.0, 1e-9);
  EXPECT_NEAR(others[0].sent_bytes, 2 * 192, 1e-9);
  EXPECT_EQ(others[0].peak_bytes, 128 + 64 + 64 + 64 + 64)
      << "what both ranks hold counts once, activations of one microbatch";
  // Tensor: half of each product; x (64 bytes) has its gradients summed, the second product its results (32 bytes), for
  // two microbatches.
  EXPECT_EQ(others[1].name, "tensor parallel");
  EXPECT_NEAR(others[1].step_seconds, 2 * flops / 2 + 2 * (2 * 2 * 0.5 + (64 + 32) / 100.0), 1e-9);
  EXPECT_NEAR(others[1].sent_bytes, 2 * 2 * (64 + 32), 1e-9);
  // 32 bytes of activations for each of two microbatches.
  EXPECT_EQ(SentBytes(module_), 64);
}

// Equal shares: the slower device and the slowest link of the ring decide.
TEST_F(TwoProducts, AlternativesOnUnequalDevices) {
  Cluster cluster = EqualDevices(OneFlopASecond(), 2);
  cluster.devices[1].name = "fast";
  cluster.devices[1].flops_per_second = 10;
  cluster.devices[1].link = {0.25, 400};
  const std::vector<Alternative> equal = Alternatives(module_, EqualDevices(OneFlopASecond(), 2));
  std::vector<Alternative> others = Alternatives(module_, cluster);
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(others[k].step_seconds, equal[k].step_seconds, 1e-9);
  cluster.host_of = {0, 1};
  cluster.network = {1.5, 50};
  others = Alternatives(module_, cluster);
  // Two steps of the ring, 192 bytes from each.
  EXPECT_NEAR(others[0].step_seconds, equal[0].step_seconds + 2 * 1 + 192 / 100.0, 1e-9);
}

TEST_F(TwoProducts, WhatFitsOneDeviceNeedsNoPipeline) {
  Cluster cluster = WithMemory(1000);
  module_.simulation.step_seconds = 500;
  for (const auto& [schedule, how] : {std::pair("1f1b", "--batch=4)"), std::pair("zb-v", "--batch=4)"),
                                      std::pair("auto", "--batch=4)"), std::pair("own.csv", "--schedule=1f1b)"),
                                      std::pair("pipedream-2bw", "--schedule=1f1b)")}) {
    module_.schedule.name = schedule;
    EXPECT_THAT(Advice(module_, cluster, MakeReport(module_, cluster)),
                Contains(testing::AllOf(HasSubstr("a pipeline gains only bubbles"), testing::EndsWith(how))))
        << schedule;
  }
  module_.schedule.name = "1f1b";
  cluster = WithMemory(383);
  EXPECT_THAT(Advice(module_, cluster, MakeReport(module_, cluster)),
              Not(Contains(HasSubstr("a pipeline gains only bubbles"))));
  cluster = WithMemory(1000);
  module_.simulation.step_seconds = 100;
  EXPECT_THAT(Advice(module_, cluster, MakeReport(module_, cluster)),
              Not(Contains(HasSubstr("a pipeline gains only bubbles"))));
}

TEST(Advice, MoreMicrobatches) {
  Module module;
  module.schedule.name = "1f1b";
  module.schedule.shape = {8, 1, 4};
  module.stages.resize(8);
  for (int s = 0; s < 8; ++s) module.stages[s] = {s, {1, 1, 1}};
  // Links that take no time.
  Node* nothing = module.graph.AddNode({.op = "Message", .domain = kPipecDomain, .stage = 0});
  for (int s = 0; s < 7; ++s) {
    module.messages.push_back({nothing, MessageKind::kActivation, s, s + 1});
    module.messages.push_back({nothing, MessageKind::kGradient, s + 1, s});
  }
  module.simulation.bubble_ratio = 7.0 / 11;
  const Cluster cluster = EqualDevices(OneFlopASecond(), 8);
  EXPECT_THAT(Advice(module, cluster, MakeReport(module, cluster)),
              Contains("M=4 is small for 8 ranks: M=32 lowers the bubble from 63.6 % to 17.9 % "
                       "(--microbatches=32 --batch=32)"));
  // A batch that is given is divided anew.
  module.microbatch_size = 8;
  const auto advice = [&](const Settled& settled) {
    return Advice(module, cluster, MakeReport(module, cluster, settled), settled);
  };
  EXPECT_THAT(advice({}), Contains(HasSubstr("(--microbatches=32 --batch=256)")));
  EXPECT_THAT(advice({.batch = true}),
              Contains("M=4 is small for 8 ranks, which have a bubble of 63.6 %: --microbatches=auto finds how many "
                       "parts of the batch take least time"));
  module.microbatch_size = 1;
  EXPECT_THAT(advice({.batch = true}), Not(Contains(HasSubstr("--microbatches")))) << "no smaller part";
  EXPECT_THAT(advice({.microbatches = true}), Not(Contains(HasSubstr("--microbatches")))) << "as many as are best";
  module.simulation.bubble_ratio = 0.19;
  EXPECT_THAT(Advice(module, cluster, MakeReport(module, cluster)),
              Not(Contains(HasSubstr("--microbatches"))));
}

// A sum that is over before the last gradient of the other rank costs nothing.
TEST_F(TwoProducts, ALongSumOverReplicas) {
  const Cluster cluster = EqualDevices(OneFlopASecond(), 2);
  module_.replicas = 2;
  double computed = 0;
  for (const SimulatedAction& slice : module_.simulation.ranks[0]) {
    if (IsCompute(slice.action.kind)) computed = std::max(computed, slice.end);
  }
  const auto advice = [&](double end, const Settled& settled) {
    auto& slices = module_.simulation.ranks[1];
    std::erase_if(slices, [](const SimulatedAction& s) { return s.action.kind == ActionKind::kReduceGrad; });
    slices.push_back({{ActionKind::kReduceGrad, 1}, computed - 1, end});
    module_.simulation.step_seconds = 10;
    const Report report = MakeReport(module_, cluster, settled);
    EXPECT_EQ(report.replicas, 2);
    EXPECT_TRUE(report.alternatives.empty());
    EXPECT_THAT(ReportText(report), HasSubstr("a<b: 2 replicas of 2 ranks x 1 stage"));
    return Advice(module_, cluster, report, settled);
  };
  EXPECT_THAT(advice(computed + 2, {.batch = true}), Contains(testing::EndsWith("20 % of the step")));
  EXPECT_THAT(advice(computed + 2, {}), Contains(HasSubstr("20 % of the step: more microbatches")));
  EXPECT_THAT(advice(computed + 2, {}),
              Contains(HasSubstr("added up 2 s after the last of them is there, 20 % of the step")));
  EXPECT_THAT(advice(computed, {}), Not(Contains(HasSubstr("added up"))));
}

// All activations of a step at once: 32 times as many do not fit, twice as many do.
TEST(Advice, MoreMicrobatchesWithinTheMemory) {
  Module module;
  module.schedule.name = "gpipe";
  module.schedule.shape = {2, 1, 2};
  module.stages = {{0, {1, 1, 1}}, {1, {1, 1, 1}}};
  Node* nothing = module.graph.AddNode({.op = "Message", .domain = kPipecDomain, .stage = 0});
  module.messages = {{nothing, MessageKind::kActivation, 0, 1}, {nothing, MessageKind::kGradient, 1, 0}};
  module.simulation.bubble_ratio = 1.0 / 3;
  module.memory.resize(2);
  for (RankMemory& memory : module.memory) {
    memory.buffers.push_back({"w", BufferKind::kParameter, 50});
    memory.buffers.push_back({"r", BufferKind::kActivation, 25, -1, {64, 128}});
    memory.arena_bytes = 100;
  }
  DeviceProfile device = OneFlopASecond();
  for (const auto& [bytes, says] : {std::pair(0, true), std::pair(150, true), std::pair(149, false)}) {
    device.memory_bytes = bytes;
    const Cluster cluster = EqualDevices(device, 2);
    EXPECT_THAT(Advice(module, cluster, MakeReport(module, cluster)),
                says
                    ? testing::Matcher<std::vector<std::string>>(Contains(HasSubstr("M=4 lowers the bubble")))
                    : testing::Matcher<std::vector<std::string>>(Not(Contains(HasSubstr("--microbatches")))))
        << bytes;
  }
}

TEST_F(TwoProducts, UnevenStages) {
  const Cluster cluster = EqualDevices(OneFlopASecond(), 2);
  module_.stages[0].times = {4, 1, 1};
  EXPECT_THAT(Advice(module_, cluster, MakeReport(module_, cluster)),
              Contains(HasSubstr("stage 0 takes 1.3 x the mean of all stages")));
  EXPECT_THAT(Advice(module_, cluster, MakeReport(module_, cluster)),
              Contains(HasSubstr("parameter 'w0' of 128 B")));
  module_.stages[0].times = {1, 1, 1};
  EXPECT_THAT(Advice(module_, cluster, MakeReport(module_, cluster)),
              Not(Contains(HasSubstr("the mean of all"))));
}

// Of two stages a rank one may be as heavy as it likes, if the ranks are even.
TEST(Advice, SeveralStagesARank) {
  Module module;
  module.schedule.name = "interleaved";
  module.schedule.shape = {2, 2, 2};
  module.stages = {{0, {3, 3, 3}}, {1, {2, 2, 2}}, {0, {1, 1, 1}}, {1, {2, 2, 2}}};
  const Cluster cluster = EqualDevices(OneFlopASecond(), 2);
  EXPECT_THAT(Advice(module, cluster, MakeReport(module, cluster)), Not(Contains(HasSubstr("the mean of"))));
  module.stages[2].times = {3, 3, 3};
  EXPECT_THAT(Advice(module, cluster, MakeReport(module, cluster)),
              Contains("rank 0 takes 1.2 x the mean of all ranks"));
}

// The slow device has less work than the other, and takes longer for it.
TEST_F(TwoProducts, ASlowDevice) {
  Cluster cluster = EqualDevices(OneFlopASecond(), 2);
  cluster.devices[0].name = "fast";
  cluster.devices[0].flops_per_second = 10;
  module_.stages[0].times = {12.8, 0, 0};
  module_.stages[1].times = {64, 0, 0};
  EXPECT_THAT(
      Advice(module_, cluster, MakeReport(module_, cluster)),
      Contains(
          "stage 1 takes 1.7 x the mean of all stages: its device, cpu, takes 10.0 x as long for it as fast "
          "would"));
}

// Of plans of one to four ranks, with 8 samples a step.
TEST(Advice, OneDeviceIsTheFastest) {
  Report report;
  report.peak_bytes = 2000;
  report.memory_limit = 8000;
  report.candidates = {{"1f1b", {1, 1, 4}, 8, 2.0}, {"1f1b", {1, 1, 2}, 8, 2.1}, {"1f1b", {3, 1, 4}, 8, 2.5}};
  const std::string said =
      "the model fits one device (2 kB of 8 kB), and of the plans for 1 to 4 ranks that of one is the "
      "fastest: a pipeline "
      "gains only bubbles";
  EXPECT_THAT(AdviceOnChoice(report, 4),
              testing::ElementsAre(said + ", the best one of 3 ranks takes 25.0 % longer a sample"));
  report.candidates.pop_back();
  EXPECT_THAT(AdviceOnChoice(report, 4), testing::ElementsAre(said));
  EXPECT_THAT(AdviceOnChoice(report, 1), testing::IsEmpty()) << "there was no choice";
  report.candidates[0].shape.ranks = 2;
  EXPECT_THAT(AdviceOnChoice(report, 4), testing::IsEmpty());
}

TEST_F(TwoProducts, MessagesLongerThanWork) {
  DeviceProfile device = OneFlopASecond();
  device.link.latency_seconds = 10;
  Cluster cluster = EqualDevices(device, 2);
  module_.schedule = *FindSchedule("1f1b")->generate({2, 1, 2});
  const Message forward = module_.messages[0];
  module_.messages.push_back({forward.node, MessageKind::kGradient, 1, 0});
  // Twice there and back, one of the microbatches after the other: 2 x 10.64 s, and 3 + 1 + 3 s of F and B.
  const std::vector<std::string> advice = Advice(module_, cluster, MakeReport(module_, cluster));
  EXPECT_THAT(advice, Contains(testing::MatchesRegex(
                          "stage 0 sends and receives for .* a microbatch and computes for 3 s: "
                          "with links twice as fast a step would be [0-9]+ % shorter")));
  EXPECT_THAT(advice, Not(Contains(HasSubstr("--stages"))));
  // Where work hides the messages faster links gain nothing: one is longer than the few that are sent.
  module_.stages[1].times = {1000, 1000, 1000};
  EXPECT_THAT(Advice(module_, cluster, MakeReport(module_, cluster)),
              Not(Contains(HasSubstr("sends and receives"))));
}

}  // namespace
}  // namespace pipec
