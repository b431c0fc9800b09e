// The choice of ranks and microbatches on plans whose times are made up: whatever is passed over, the two best are
// those of all.
#include "passes/auto_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "passes/plan_bounds.h"
#include "runtime/base/least_memory.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A device does one FLOP a second. A step of P ranks and M microbatches takes an equal share of the work, and `bubble`.
class MadeUp : public PlanMaker {
 public:
  int64_t batch = 0;              // 0: one sample a microbatch
  int64_t update = 0, fixed = 0;  // seconds, even: of a step, and of a microbatch however few samples it has
  int64_t bytes = 1;              // of the model
  int64_t memory_limit = 0;       // a device; 0: none
  int64_t hidden = 0;             // seconds that a step takes besides, which no bound knows of
  int64_t again = 0;   // seconds of a microbatch made again, for half of the activations; 0: cannot
  int fast_ranks = 0;  // the first of them do three FLOP a second
  std::map<std::pair<int, int>, double> bubble;  // by ranks and microbatches, seconds of a step
  int compiled = 0;

  absl::StatusOr<Cluster> ClusterOf(int ranks) override {
    DeviceProfile device;
    device.name = "slow";
    device.flops_per_second = 1;
    device.bytes_per_second = 1e30;
    device.memory_bytes = memory_limit;
    Cluster cluster = EqualDevices(device, ranks);
    for (int r = 0; r < fast_ranks && r < ranks; ++r) {
      cluster.devices[r].name = "fast";
      cluster.devices[r].flops_per_second = 3;
    }
    return cluster;
  }

  absl::StatusOr<std::unique_ptr<Module>> BeforeCut(int microbatches) override {
    auto module = std::make_unique<Module>();
    module->microbatch_size = Samples(microbatches);
    AddProduct(module->graph, Microbatch(microbatches), Kind::kF);
    AddProduct(module->graph, update, Kind::kU);
    Value* weight = module->graph.AddValue(ValueKind::kParameter, "weight", {DType::kInt8, {bytes}});
    module->graph.AddNode({.op = "Reshape", .inputs = {weight}, .outputs = {weight->type}});
    return module;
  }

  absl::StatusOr<std::unique_ptr<Module>> Compile(const PlanCandidate& candidate, int64_t limit) override {
    ++compiled;
    const int p = candidate.shape.ranks, m = candidate.shape.microbatches;
    if (limit <= 0) limit = memory_limit;
    const bool recomputes = RecomputesWithin(p, m, limit);
    if (limit > 0 && Bytes(p, m, recomputes) > limit)
      return WithLeastMemory(absl::ResourceExhaustedError("too little"), Bytes(p, m, recomputes));
    auto module = std::make_unique<Module>();
    module->microbatch_size = Samples(m);
    module->simulation.step_seconds = module->simulation.makespan = Step(p, m, recomputes);
    module->memory.resize(1);
    module->memory[0].arena_bytes = Bytes(p, m, recomputes);
    module->stages.resize(1);
    if (recomputes) module->stages[0].recomputed.emplace_back();
    return module;
  }

  absl::StatusOr<std::unique_ptr<Module>> Draft(const PlanCandidate& candidate) override {
    return Compile(candidate, 0);
  }

  void OnPhase(absl::string_view) override {}

  int64_t Samples(int m) const { return batch > 0 ? batch / m : 1; }
  int64_t Microbatch(int m) const { return fixed + 2 * Samples(m); }
  bool RecomputesWithin(int p, int m, int64_t limit) const {
    return again > 0 && limit > 0 && Bytes(p, m, false) > limit;
  }
  double Step(int p, int m, bool recomputes) const {
    return 1.0 * (m * (Microbatch(m) + (recomputes ? again : 0)) + update) / p + hidden + bubble.at({p, m});
  }
  int64_t Bytes(int p, int m, bool recomputes) const {
    return bytes / p + (recomputes ? 5 : 10) * Samples(m) * std::min(p, m);
  }
  // Within the limit, or with as little as there can be.
  int64_t Bytes(int p, int m) const { return Bytes(p, m, RecomputesWithin(p, m, memory_limit)); }
  double Step(int p, int m) const { return Step(p, m, RecomputesWithin(p, m, memory_limit)); }

 private:
  static void AddProduct(Graph& graph, int64_t seconds, Kind kind) {
    Value* a = graph.AddValue(ValueKind::kInput, "a", {DType::kFloat32, {1, seconds / 2}});
    Value* b = graph.AddValue(ValueKind::kInput, "b", {DType::kFloat32, {seconds / 2, 1}});
    graph.AddNode(
        {.op = "MatMul", .inputs = {a, b}, .outputs = {TensorType{DType::kFloat32, {1, 1}}}, .kind = kind});
  }
};

struct Plan {
  double sample_seconds;
  int ranks, microbatches;
  auto operator<=>(const Plan&) const = default;
};

// All that fit, the fastest first.
std::vector<Plan> All(const MadeUp& maker, const PlanSpace& space) {
  std::vector<Plan> plans;
  for (const int p : space.ranks) {
    for (const int m : space.microbatches) {
      if (maker.memory_limit == 0 || maker.Bytes(p, m) <= maker.memory_limit)
        plans.push_back({maker.Step(p, m) / static_cast<double>(m * maker.Samples(m)), p, m});
    }
  }
  std::sort(plans.begin(), plans.end());
  return plans;
}

int64_t LeastBytes(const MadeUp& maker, const PlanSpace& space) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const int p : space.ranks) {
    for (const int m : space.microbatches) least = std::min(least, maker.Bytes(p, m));
  }
  return least;
}

TEST(AutoPlan, TheTwoBestAreThoseOfAll) {
  std::mt19937 random(1);
  const auto up_to = [&random](int most) { return static_cast<int>(random() % (most + 1)); };
  CompileOptions options;
  int pairs = 0, compiled = 0, refused = 0, limited = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    MadeUp maker;
    const bool fixed_batch = trial % 2 == 0;
    if (fixed_batch) maker.batch = int64_t{1} << up_to(7);
    const PlanSpace space{RanksToTry(1 + up_to(9)), MicrobatchesToTry(4, maker.batch), maker.batch};
    maker.update = 2 * up_to(20);
    maker.fixed = 2 * up_to(4);
    maker.bytes = 1 + up_to(2000);
    if (up_to(1)) maker.memory_limit = 1 + up_to(2000);
    maker.hidden = up_to(10);
    maker.again = up_to(2);
    for (const int p : space.ranks) {
      const double of_ranks = up_to(20 * (p - 1));
      for (const int m : space.microbatches)
        maker.bubble[{p, m}] = fixed_batch ? up_to(20 * (p - 1)) : of_ranks;
    }
    const std::vector<Plan> all = All(maker, space);
    const absl::StatusOr<AutoPlan> chosen = FindAutoPlan(options, space, maker);
    pairs += static_cast<int>(space.ranks.size() * space.microbatches.size());
    compiled += maker.compiled;
    if (all.empty()) {
      ASSERT_TRUE(absl::IsResourceExhausted(chosen.status())) << chosen.status();
      const int64_t least = LeastBytes(maker, space);
      EXPECT_GE(LeastMemory(chosen.status()), least);
      EXPECT_LE(LeastMemory(chosen.status()), least + least / 256 + 1) << "as exactly as it is looked for";
      ++refused;
      continue;
    }
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    limited += all.size() < space.ranks.size() * space.microbatches.size();
    const std::vector<PlanCandidate>& found = chosen->candidates;
    for (size_t k = 0; k < 2 && k < all.size(); ++k) {
      ASSERT_GT(found.size(), k);
      ASSERT_EQ(found[k].refusal, "");
      ASSERT_NEAR(found[k].SampleSeconds(), all[k].sample_seconds, 1e-9)
          << "trial " << trial << ", place " << k;
    }
    // Either tried, or refused with others, or passed over.
    for (const PlanCandidate& candidate : found) {
      const bool fits =
          maker.memory_limit == 0 ||
          maker.Bytes(candidate.shape.ranks, candidate.shape.microbatches) <= maker.memory_limit;
      EXPECT_EQ(candidate.refusal.empty(), fits);
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(limited, 300);
  EXPECT_LT(compiled, pairs / 2);
}

PlanSpace OfRanks(std::vector<int> ranks, MadeUp& maker) {
  const PlanSpace space{std::move(ranks), MicrobatchesToTry(4, 0), 0};
  for (const int p : space.ranks) {
    for (const int m : space.microbatches) maker.bubble[{p, m}] = 10.0 * (p - 1);
  }
  return space;
}

// Of one rank no number of microbatches has a bubble: what a step takes besides decides.
TEST(AutoPlan, MoreMicrobatchesFirst) {
  MadeUp maker;
  maker.hidden = 100;
  const PlanSpace space = OfRanks({1, 2}, maker);
  maker.bubble[{2, 32}] = maker.bubble[{2, 16}] = 80;
  const absl::StatusOr<AutoPlan> chosen = FindAutoPlan(CompileOptions(), space, maker);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  const std::vector<Plan> all = All(maker, space);
  EXPECT_NEAR(chosen->candidates[0].SampleSeconds(), all[0].sample_seconds, 1e-9);
  EXPECT_NEAR(chosen->candidates[1].SampleSeconds(), all[1].sample_seconds, 1e-9);
}

// With 4 ranks and many microbatches half of the activations is made again; with two it is not.
TEST(AutoPlan, FewerMicrobatchesNeedNotRecompute) {
  MadeUp maker;
  maker.memory_limit = 39;
  maker.again = 100;
  const PlanSpace space = OfRanks({4}, maker);
  const absl::StatusOr<AutoPlan> chosen = FindAutoPlan(CompileOptions(), space, maker);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->candidates[0].shape.microbatches, All(maker, space)[0].microbatches);
  EXPECT_EQ(chosen->candidates[0].shape.microbatches, 2);
}

TEST(AutoPlan, SaysWhatWouldDo) {
  MadeUp maker;
  maker.bytes = 1000;
  maker.memory_limit = 100;
  const PlanSpace space{RanksToTry(4), MicrobatchesToTry(4, 0), 0};
  for (const int p : space.ranks) {
    for (const int m : space.microbatches) maker.bubble[{p, m}] = 0;
  }
  CompileOptions options;
  options.recompute = Recompute::kNone;
  const absl::Status status = FindAutoPlan(options, space, maker).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("no plan of 1 to 4 ranks and 1 to 32 microbatches fits 100 bytes a device"),
                    HasSubstr("260 bytes a device would do, with --stages=4 --microbatches=1"),
                    HasSubstr("--recompute=auto"), HasSubstr("--optimizer")));
}

// Work is shared as the devices' rates are.
TEST(PlanBounds, UnequalDevices) {
  MadeUp maker;
  maker.fast_ranks = 1;
  maker.update = 20;
  maker.memory_limit = 100;
  const PlanSpace space{{1, 2, 3}, {8}, 0};
  PlanBounds bounds(space, maker);
  ASSERT_EQ(bounds.LookAt(8), absl::OkStatus());
  const double work = 8 * 2 + 20;  // seconds on a slow device, of 8 samples
  EXPECT_NEAR(bounds.SampleSeconds(1, 8), work / 3 / 8, 1e-9);
  EXPECT_NEAR(bounds.SampleSeconds(2, 8), work / 4 / 8, 1e-9);
  EXPECT_NEAR(bounds.SampleSeconds(3, 8), work / 5 / 8, 1e-9);
  EXPECT_EQ(bounds.DeviceBytes(3), 300);
  maker.memory_limit = 0;
  PlanBounds unlimited(space, maker);
  ASSERT_EQ(unlimited.LookAt(8), absl::OkStatus());
  EXPECT_EQ(unlimited.DeviceBytes(3), 0);
}

TEST(AutoPlan, NumbersToChooseFrom) {
  EXPECT_THAT(RanksToTry(1), ElementsAre(1));
  EXPECT_THAT(RanksToTry(24), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24));
  EXPECT_THAT(MicrobatchesToTry(2, 0), ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_THAT(MicrobatchesToTry(8, 0), ElementsAre(1, 2, 4, 8, 16, 32, 64));
  EXPECT_THAT(MicrobatchesToTry(2, 12), ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_THAT(MicrobatchesToTry(2, 97), ElementsAre(1, 97)) << "one divisor beyond";
  EXPECT_THAT(MicrobatchesToTry(2, 1000), ElementsAre(1, 2, 4, 5, 8, 10, 20, 25, 40));
}

}  // namespace
}  // namespace pipec
