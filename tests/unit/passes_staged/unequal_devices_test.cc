// Devices and links that differ: loads by hand, and every cut of a chain tried.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "compiler/cost/node_cost.h"
#include "compiler/partition/solve.h"
#include "passes/solve_for_cluster.h"
#include "passes/stage_items.h"
#include "small_models.h"

namespace pipec {
namespace {

using ::testing::ElementsAre;

DeviceProfile Device(const std::string& name, double flops, double bytes, double launch = 1e-7) {
  DeviceProfile device;
  device.name = name;
  device.flops_per_second = flops;
  device.bytes_per_second = bytes;
  device.launch_seconds = launch;
  device.link = {1e-6, 1e9};
  return device;
}

DeviceProfile TimesAsFast(double speed) {
  return Device(absl::StrCat("x", speed), 1e9 * speed, 1e9 * speed, 1e-7 / speed);
}

PassContext OnDevices(std::vector<DeviceProfile> devices, int microbatches,
                      const std::string& schedule = "1f1b") {
  PassContext context = Context(static_cast<int>(devices.size()), microbatches, schedule);
  context.options.cluster.devices = std::move(devices);
  return context;
}

// Seconds of F, I and W of a microbatch by rank, and of what its stages send and receive, each tensor once.
std::vector<double> Loads(const Module& module, const Cluster& cluster) {
  std::vector<double> loads(cluster.devices.size(), 0);
  for (const Node* node : module.graph.Nodes()) {
    if (node->kind == Kind::kU || node->Is("Message", kPipecDomain)) continue;
    const int rank = module.stages[node->stage].rank;
    loads[rank] += NodeSeconds(*node, cluster.devices[rank]);
  }
  std::set<std::pair<int, const Value*>> counted;  // on a chain a tensor goes to one stage
  for (const Message& message : module.messages) {
    if (message.kind != MessageKind::kActivation && message.kind != MessageKind::kGradient) continue;
    const int from = module.stages[message.from_stage].rank, to = module.stages[message.to_stage].rank;
    for (const Value* value : message.node->inputs()) {
      for (const int stage : {message.from_stage, message.to_stage}) {
        if (!counted.insert({stage, value}).second) continue;
        loads[module.stages[stage].rank] +=
            MessageSeconds(value->type.bytes(), cluster.LinkBetween(from, to));
      }
    }
  }
  return loads;
}

double Slowest(const Module& module, const Cluster& cluster) {
  const std::vector<double> loads = Loads(module, cluster);
  return *std::max_element(loads.begin(), loads.end());
}

std::vector<int> LayersOfRanks(const Module& module, int ranks) {
  std::vector<int> layers(ranks, 0);
  for (const Node* node : module.graph.Nodes()) {
    if (node->kind == Kind::kF && node->Is("MatMul")) ++layers[module.stages[node->stage].rank];
  }
  return layers;
}

// Chains whose second half is wider in bytes than in flops: elementwise layers between products.
std::unique_ptr<Module> Uneven() {
  Net net;
  for (int k = 0; k < 6; ++k) net.Layer(k);
  for (int k = 6; k < 20; ++k) net.Emit("Relu", {net.last()}, absl::StrCat("y", k));
  for (int k = 20; k < 23; ++k) net.Layer(k);
  return net.Finish();
}

// Two ranks: the cut is that of the fastest step of all places, whichever device comes first and whatever it is better
// at; and none has a slowest rank, by loads counted here, below the bound.
TEST(UnequalDevices, TwoRanksEqualBruteForce) {
  const std::vector<std::vector<DeviceProfile>> pairs = {
      {TimesAsFast(1), TimesAsFast(3)},
      {TimesAsFast(5), TimesAsFast(1)},
      {Device("computes", 1e10, 1e9), Device("moves", 5e8, 1e10)},
      {Device("moves", 5e8, 1e10), Device("computes", 1e10, 1e9)},
      {Device("starts late", 1e11, 1e11, 1e-6), TimesAsFast(1)},
  };
  for (const std::vector<DeviceProfile>& devices : pairs) {
    const PassContext context = OnDevices(devices, 4);
    const Cluster& cluster = context.options.cluster;
    double best = 1e9, fastest = 1e9;
    int cuts = 0;
    auto named = Uneven();
    std::vector<std::string> names;
    for (const Node* node : named->graph.Nodes()) names.push_back(node->output(0)->name());
    for (const std::string& name : names) {
      auto module = Uneven();
      PassContext cut = context;
      cut.options.cut = {name};
      if (!Compile(*module, cut, Level::kScheduled).ok()) continue;
      ++cuts;
      best = std::min(best, Slowest(*module, cluster));
      fastest = std::min(fastest, module->simulation.step_seconds);
    }
    EXPECT_GT(cuts, 25);
    auto module = Uneven();
    ASSERT_EQ(Compile(*module, context, Level::kScheduled), absl::OkStatus());
    EXPECT_NEAR(module->simulation.step_seconds, fastest, 1e-3 * fastest) << cluster.DeviceNames();
    EXPECT_LE(module->partition_bound, best * (1 + 1e-9)) << cluster.DeviceNames();
    EXPECT_GT(module->partition_bound, 0.3 * best) << cluster.DeviceNames();
  }
}

// Seconds of the slowest rank under the best cut of Uneven() behind nodes of the net: all of them tried, by prefix
// sums.
double BestOfAllCuts(const PassContext& context) {
  auto module = Uneven();
  EXPECT_EQ(Compile(*module, context, Level::kTraining), absl::OkStatus());
  const Cluster& cluster = context.options.cluster;
  const int ranks = static_cast<int>(cluster.devices.size());
  std::vector<int> ends;  // places behind which one may cut
  std::map<const Node*, int> place;
  std::vector<std::vector<double>> behind(ranks, {0});  // by rank and place: seconds of what stands before
  for (const Node* node : module->graph.Nodes()) {
    if (node->kind != Kind::kF) continue;
    const int at = place[node] = static_cast<int>(place.size());
    if (const char first = node->output(0)->name()[0]; first == 'h' || first == 'y') ends.push_back(at + 1);
    for (auto& sums : behind) sums.push_back(0);
  }
  for (const Node* node : module->graph.Nodes()) {
    if (node->kind == Kind::kU) continue;
    const int at = place.at(node->kind == Kind::kF ? node : node->origin);
    for (int r = 0; r < ranks; ++r) behind[r][at + 1] += NodeSeconds(*node, cluster.devices[r]);
  }
  for (auto& sums : behind) std::partial_sum(sums.begin(), sums.end(), sums.begin());
  const int all = static_cast<int>(behind[0].size()) - 1;
  const auto messages = [&](int rank) {
    return 2 * MessageSeconds(Net::Type().bytes(), cluster.LinkBetween(rank, rank + 1));
  };
  const std::function<double(int, int)> best = [&](int rank, int begin) {
    const double received = rank > 0 ? messages(rank - 1) : 0;
    if (rank == ranks - 1) return behind[rank][all] - behind[rank][begin] + received;
    double least = 1e9;
    for (const int end : ends) {
      if (end <= begin) continue;
      const double here = behind[rank][end] - behind[rank][begin] + received + messages(rank);
      if (here >= least) break;
      least = std::min(least, std::max(here, best(rank + 1, end)));
    }
    return least;
  };
  return best(0, 0);
}

// Four ranks, devices and links drawn at random: the solver's cut is the best of all, and the pass has no slower step.
TEST(UnequalDevices, FourRanksEqualBruteForce) {
  std::mt19937 random(1);
  const auto draw = [&](double least, double most) {
    return least * std::pow(most / least, std::uniform_real_distribution<>(0, 1)(random));
  };
  double worst = 0, least_bound = 1;
  constexpr int kTrials = 40;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<DeviceProfile> devices;
    for (const char* name : {"a", "b", "c", "d"})
      devices.push_back(Device(name, draw(1e8, 1e10), draw(1e8, 1e10), draw(1e-8, 1e-6)));
    if (trial % 3 == 0) devices[2] = devices[0];
    PassContext context = OnDevices(devices, 4);
    Cluster& cluster = context.options.cluster;
    cluster.host_of = {0, 0, 1, 1};
    cluster.network = {draw(1e-7, 1e-4), 1e9};
    auto module = Uneven();
    ASSERT_EQ(Compile(*module, context, Level::kTraining), absl::OkStatus());
    module->graph.NumberNodes();
    auto items = BuildStageItems(*module, cluster);
    ASSERT_EQ(items.status(), absl::OkStatus());
    items->problem.stages = 4;
    items->problem.rank_of_stage = {0, 1, 2, 3};
    const auto solution = SolveForCluster(*items, cluster, [](const PartitionProblem& problem) {
      return SolvePartition(problem);
    });
    ASSERT_EQ(solution.status(), absl::OkStatus());
    const double best = BestOfAllCuts(context);
    worst = std::max(worst, solution->bottleneck / best);
    EXPECT_LE(solution->lower_bound, best * (1 + 1e-9)) << trial;
    least_bound = std::min(least_bound, solution->lower_bound / best);
    auto chosen = Uneven(), solved = Uneven();
    PassContext cut = context;
    for (size_t item = 0; item + 1 < items->nodes.size(); ++item) {
      if (solution->stage_of[item] < solution->stage_of[item + 1])
        cut.options.cut.push_back(items->nodes[item]->output(0)->name());
    }
    ASSERT_EQ(Compile(*chosen, context, Level::kScheduled), absl::OkStatus());
    ASSERT_EQ(Compile(*solved, cut, Level::kScheduled), absl::OkStatus());
    EXPECT_LE(chosen->simulation.step_seconds, solved->simulation.step_seconds * (1 + 1e-3)) << trial;
  }
  EXPECT_LE(worst, 1 + 1e-9);
  EXPECT_GE(least_bound, 0.25);
}

// Where devices differ in speed alone, one speed a device says all: what the partitioner knows is what each item takes.
TEST(UnequalDevices, TimesOfItemsAreThoseOfTheDevices) {
  PassContext context = OnDevices({TimesAsFast(1), TimesAsFast(2), TimesAsFast(4)}, 8);
  auto module = Chain(6);
  ASSERT_EQ(Compile(*module, context, Level::kTraining), absl::OkStatus());
  module->graph.NumberNodes();
  const auto items = BuildStageItems(*module, context.options.cluster);
  ASSERT_EQ(items.status(), absl::OkStatus());
  for (size_t i = 0; i < items->nodes.size(); ++i) {
    for (size_t rank = 0; rank < 3; ++rank) {
      const StageTimes& times = items->times_on[items->kind_of_rank[rank]][i];
      const double speed = items->problem.speed[rank];
      EXPECT_NEAR(items->times[i].f, times.f * speed, 1e-9 * times.f * speed) << i;
      EXPECT_NEAR(items->times[i].i, times.i * speed, 1e-9 * times.i * speed) << i;
      EXPECT_NEAR(items->times[i].w, times.w * speed, 1e-9 * times.w * speed) << i;
      EXPECT_NEAR(items->problem.items[i].seconds, items->SecondsOn(items->kind_of_rank[rank], i) * speed, 1e-12) << i;
    }
  }
}

TEST(UnequalDevices, LoadsFollowTheSpeed) {
  PassContext context = OnDevices({TimesAsFast(1), TimesAsFast(2), TimesAsFast(4)}, 8);
  for (DeviceProfile& device : context.options.cluster.devices) device.link = {0, 1e15};
  auto module = Chain(70);
  ASSERT_EQ(Compile(*module, context, Level::kStaged), absl::OkStatus());
  EXPECT_THAT(LayersOfRanks(*module, 3), ElementsAre(10, 20, 40));
}

// With several stages a rank each stage takes its rank's device, and the ranks share by speed.
TEST(UnequalDevices, StagesOfARankTakeItsDevice) {
  for (const std::string schedule : {"zb-v", "interleaved", "dualpipe-v"}) {
    PassContext context = OnDevices({TimesAsFast(1), TimesAsFast(3)}, 8, schedule);
    if (schedule == "interleaved") context.options.virtual_stages = 2;
    for (DeviceProfile& device : context.options.cluster.devices) device.link = {0, 1e15};
    auto module = Chain(40);
    ASSERT_EQ(Compile(*module, context, Level::kScheduled), absl::OkStatus()) << schedule;
    ASSERT_EQ(module->stages.size(), 4);
    std::vector<StageTimes> times(4, {0, 0, 0});
    for (const Node* node : module->graph.Nodes()) {
      if (node->kind == Kind::kU || node->Is("Message", kPipecDomain)) continue;
      StageTimes& stage = times[node->stage];
      (node->kind == Kind::kF   ? stage.f
       : node->kind == Kind::kI ? stage.i
                                : stage.w) +=
          NodeSeconds(*node, context.options.cluster.devices[module->stages[node->stage].rank]);
    }
    for (int s = 0; s < 4; ++s) {
      EXPECT_NEAR(module->stages[s].times.f, times[s].f, 1e-15) << schedule << " " << s;
      EXPECT_NEAR(module->stages[s].times.i, times[s].i, 1e-15) << schedule << " " << s;
      EXPECT_NEAR(module->stages[s].times.w, times[s].w, 1e-15) << schedule << " " << s;
    }
    const std::vector<int> layers = LayersOfRanks(*module, 2);
    EXPECT_NEAR(layers[1], 30, 2) << schedule;
  }
}

// In the simulated timeline a message takes the link between its two ranks.
TEST(UnequalLinks, MessagesTakeTheirPairsLink) {
  PassContext context = Context(4, 4);
  Cluster& cluster = context.options.cluster;
  cluster.host_of = {0, 0, 1, 1};
  cluster.network = {1e-3, 1e8};
  cluster.rank_links[{2, 3}] = {5e-6, 1e9};
  auto module = Chain(16);
  ASSERT_EQ(Compile(*module, context, Level::kScheduled), absl::OkStatus());
  const double bytes = Net::Type().bytes();
  const std::vector<double> behind = {1e-6 + bytes / 1e9, 1e-3 + bytes / 1e8, 5e-6 + bytes / 1e9};
  int messages = 0;
  for (const auto& list : module->simulation.ranks) {
    for (const SimulatedAction& slice : list) {
      if (slice.action.kind != ActionKind::kSendF && slice.action.kind != ActionKind::kSendB) continue;
      const int link = slice.action.kind == ActionKind::kSendF ? slice.action.stage : slice.action.stage - 1;
      EXPECT_NEAR(slice.end - slice.start, behind[link], 1e-12) << slice.action.stage;
      ++messages;
    }
  }
  EXPECT_EQ(messages, 2 * 3 * 4);
  // A round trip of a microbatch passes the slow link twice.
  EXPECT_GT(module->simulation.makespan, 2e-3);
}

// Ranks at a slow link compute less, if that makes the step faster: of all cuts that are the same from both ends.
TEST(UnequalLinks, TheCutMakesRoomForSlowLinks) {
  for (const double seconds : {1e-6, 3e-5, 1e-4}) {  // 3e-5: there and back as long as some ten layers
    PassContext context = Context(4, 8);
    Cluster& cluster = context.options.cluster;
    for (DeviceProfile& device : cluster.devices) device.link = {0, 1e15};
    cluster.host_of = {0, 0, 1, 1};
    cluster.network = {seconds, 1e9};
    auto module = Chain(40);
    ASSERT_EQ(Compile(*module, context, Level::kScheduled), absl::OkStatus());
    EXPECT_LE(module->partition_bound, Slowest(*module, cluster) * (1 + 1e-9));
    for (int layers = 5; layers <= 16; ++layers) {
      PassContext own = context;
      own.options.cut = {absl::StrCat("y", layers - 1), "y19", absl::StrCat("y", 39 - layers)};
      auto other = Chain(40);
      ASSERT_EQ(Compile(*other, own, Level::kScheduled), absl::OkStatus());
      EXPECT_LE(module->simulation.step_seconds, other->simulation.step_seconds * (1 + 1e-3))
          << seconds << " " << layers;
    }
  }
}

// The update is the slow device's own.
TEST(UnequalDevices, UpdatesTakeTheirRanksDevice) {
  const PassContext context = OnDevices({TimesAsFast(1), TimesAsFast(10)}, 4);
  auto module = Chain(8);
  PassContext cut = context;
  cut.options.cut = {"y3"};
  ASSERT_EQ(Compile(*module, cut, Level::kScheduled), absl::OkStatus());
  std::vector<double> update(2, 0);
  for (int r = 0; r < 2; ++r) {
    for (const SimulatedAction& slice : module->simulation.ranks[r]) {
      if (slice.action.kind == ActionKind::kUpdate) update[r] += slice.end - slice.start;
    }
  }
  EXPECT_NEAR(update[0] / update[1], 10, 0.5);
}

}  // namespace
}  // namespace pipec
