// What a step takes, as it is known when the model is cut, against the finished plan; and cuts that are moved for it.
#include "passes/cut_step.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>

#include "passes/chosen_schedule.h"
#include "passes/move_for_step.h"
#include "small_models.h"

namespace pipec {
namespace {

// Seconds that the pass knows of the stages of `finished`.
double Known(std::unique_ptr<Module> module, const PassContext& context, const Module& finished) {
  EXPECT_EQ(Compile(*module, context, Level::kTraining), absl::OkStatus());
  module->graph.NumberNodes();
  const auto schedule = ChosenSchedule(module->mode, context.options);
  auto items = BuildStageItems(*module, context.options.cluster);
  std::map<std::string, int> stage_of_node;
  for (const Node* node : finished.graph.Nodes()) {
    if (node->kind == Kind::kF) stage_of_node[node->name()] = node->stage;
  }
  std::vector<int> stage_of;
  for (const Node* node : items->nodes) stage_of.push_back(stage_of_node.at(node->name()));
  items->problem.stages = schedule->shape.stages();
  items->problem.rank_of_stage = schedule->rank_of_stage;
  const CutStep step(*module, *items, *schedule, context.options.cluster);
  const double seconds = step.Of(stage_of);
  EXPECT_EQ(step.Of(stage_of, {}, seconds * 1.0001), seconds);
  EXPECT_EQ(step.Of(stage_of, {}, seconds), std::numeric_limits<double>::infinity());
  return seconds;
}

TEST(CutStep, IsThatOfTheFinishedPlan) {
  const std::vector<std::function<std::unique_ptr<Module>()>> nets = {[] { return Chain(9); }, Skips, Tied};
  for (const std::string schedule : {"1f1b", "gpipe", "zb-h1", "zb-v", "interleaved", "pipedream-2bw"}) {
    for (const bool equal : {true, false}) {
      PassContext context = Context(2, 8, schedule);
      if (schedule == "interleaved") context.options.virtual_stages = 2;
      Cluster& cluster = context.options.cluster;
      cluster.network = {3e-5, 1e9};
      if (!equal) {
        cluster.host_of = {0, 1};
        cluster.devices[1].name = "other";
        cluster.devices[1].flops_per_second = 3e8;
      }
      for (size_t net = 0; net < nets.size(); ++net) {
        auto module = nets[net]();
        ASSERT_EQ(Compile(*module, context, Level::kScheduled), absl::OkStatus());
        ASSERT_EQ(SplitValidation(*module, context).status(), absl::OkStatus());
        const double real = module->simulation.step_seconds;
        // How long it takes to put norms together is taken for a launch; and without a flush messages are placed
        // without knowing when the update is.
        const double slack = schedule == "pipedream-2bw" ? 0.02 : 1e-3;
        EXPECT_NEAR(Known(nets[net](), context, *module), real, slack * real)
            << schedule << " " << net << equal;
      }
    }
  }
}

// Chains of products and long rows of cheap nodes, drawn at random.
std::unique_ptr<Module> Drawn(int seed) {
  std::mt19937 random(seed);
  Net net;
  for (int k = 0; k < 7; ++k) {
    net.Layer(k);
    for (int more = random() % 3; more > 0; --more)
      net.Emit("Relu", {net.last()}, absl::StrCat("z", k, "_", more));
  }
  return net.Finish();
}

struct Against {
  int cases = 0, best = 0;
  double worst = 1;
};

// The pass's cut against all cuts in the order of the nodes, each as the pass itself takes it to be.
void CompareWithAll(int seed, const PassContext& context, Against& against) {
  auto chosen = Drawn(seed), module = Drawn(seed);
  ASSERT_EQ(Compile(*chosen, context, Level::kStaged), absl::OkStatus());
  ASSERT_EQ(Compile(*module, context, Level::kTraining), absl::OkStatus());
  module->graph.NumberNodes();
  const auto schedule = ChosenSchedule(module->mode, context.options);
  auto items = BuildStageItems(*module, context.options.cluster);
  const int stages = items->problem.stages = schedule->shape.stages();
  items->problem.rank_of_stage = schedule->rank_of_stage;
  const CutStep step(*module, *items, *schedule, context.options.cluster);
  std::vector<int> stage_of(items->nodes.size(), 0);
  double best = std::numeric_limits<double>::infinity();
  const std::function<void(size_t)> place = [&](size_t item) {
    if (item == stage_of.size()) {
      if (stage_of.back() == stages - 1) best = std::min(best, step.Of(stage_of, {}, best));
      return;
    }
    const int before = stage_of[item - 1];
    const bool glued = items->problem.items[item].glued_to_previous;
    for (int s = before; s <= (glued ? before : std::min(stages - 1, before + 1)); ++s)
      stage_of[item] = s, place(item + 1);
  };
  place(1);
  const double found = Known(Drawn(seed), context, *chosen);
  ++against.cases;
  against.best += found <= best * (1 + 1e-9);
  against.worst = std::max(against.worst, found / best);
}

// One stage a rank, and several.
TEST(CutStep, TheFastestOfAllCutsOrNearlySo) {
  Against one, several;
  for (int seed = 0; seed < 12; ++seed) {
    for (const std::string schedule : {"1f1b", "zb-h1"}) CompareWithAll(seed, Context(3, 4, schedule), one);
    for (const std::string schedule : {"interleaved", "zb-v"}) {
      PassContext context = Context(2, 4, schedule);
      context.options.virtual_stages = 2;
      CompareWithAll(seed, context, several);
    }
  }
  EXPECT_GE(one.best, one.cases * 9 / 10) << one.worst;
  EXPECT_LE(one.worst, 1.02);
  EXPECT_GE(several.best, several.cases * 8 / 10) << several.worst;
  EXPECT_LE(several.worst, 1.05);
}

// No cut that differs by one item is better; the cut stays one of as many stages, in an order that is valid.
TEST(MoveForStep, EndsWhereNoNeighbourIsBetter) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    PartitionProblem problem;
    problem.stages = 2 + trial % 3;
    const int items = 12;
    problem.items.resize(items);
    for (int i = 1; i < items; ++i)
      problem.items[i].glued_to_previous = random() % 5 == 0 && i % 3 > 0 && i % 4 > 0;
    for (PartitionItem& item : problem.items) item.seconds = 1 + random() % 9;
    int calls = 0;
    const auto seconds = [&](const std::vector<int>& cut, double below) {
      ++calls;
      std::vector<double> loads(problem.stages, 0);
      for (int i = 0; i < items; ++i) {
        EXPECT_FALSE(problem.items[i].glued_to_previous && cut[i] != cut[i - 1]);
        EXPECT_TRUE(i == 0 || cut[i] == cut[i - 1] || cut[i] == cut[i - 1] + 1);
        loads[cut[i]] += problem.items[i].seconds;
      }
      EXPECT_EQ(cut.back(), problem.stages - 1);
      double slowest = 0;
      for (size_t s = 0; s < loads.size(); ++s) slowest = std::max(slowest, loads[s] * (s + 1));
      return slowest < below ? slowest : std::numeric_limits<double>::infinity();
    };
    std::vector<int> stage_of;
    for (int i = 0; i < items; ++i) stage_of.push_back(i * problem.stages / items);
    const double before = seconds(stage_of, 1e9);
    std::vector<int> moved = stage_of;
    const double after = MoveForStep(
        problem, before, seconds, [] { return true; }, moved);
    EXPECT_LE(after, before);
    EXPECT_EQ(seconds(moved, 1e9), after);
    for (int i = 1; i < items; ++i) {
      if (moved[i] == moved[i - 1]) continue;
      for (const bool later : {false, true}) {  // the run behind or before the boundary
        std::vector<int> other = moved;
        int first = later ? i : i - 1;
        while (first > 0 && problem.items[first].glued_to_previous) --first;
        int end = first + 1;
        while (end < items && problem.items[end].glued_to_previous) ++end;
        std::fill(other.begin() + first, other.begin() + end, later ? moved[i - 1] : moved[i]);
        if (std::set<int>(other.begin(), other.end()).size() < static_cast<size_t>(problem.stages)) continue;
        EXPECT_GE(seconds(other, 1e9), after * (1 - 1e-9)) << trial;
      }
    }
    calls = 0;
    moved = stage_of;
    MoveForStep(
        problem, before, seconds, [&] { return calls < 5; }, moved);
    EXPECT_LE(calls, 5);
  }
}

// An order that was found for the stages of a schedule with a name is compiled with just these stages.
TEST(CutFor, HasTheStagesOfThatSchedule) {
  int other = 0;
  for (int seed = 0; seed < 20; ++seed) {
    for (const std::string schedule : {"1f1b", "gpipe", "zb-h2"}) {
      PassContext context = Context(3, 8, schedule);
      context.options.cluster.network = {3e-5, 1e9};
      const auto stages = [&] {
        auto module = Drawn(seed);
        EXPECT_EQ(Compile(*module, context, Level::kScheduled), absl::OkStatus());
        std::map<std::string, int> stage_of;
        for (const Node* node : module->graph.Nodes()) {
          if (node->kind == Kind::kF) stage_of[node->name()] = node->stage;
        }
        return stage_of;
      };
      const std::map<std::string, int> named = stages();
      CompileOptions& options = context.options;
      options.cut_for = std::make_shared<const Schedule>(*ChosenSchedule(Mode::kTrain, options));
      options.schedule_from_file = std::make_shared<const Schedule>(*FindSchedule("zb-h1")->generate({3, 1, 8}));
      EXPECT_EQ(stages(), named) << schedule << " " << seed;
      options.cut_for = nullptr;
      options.cut_for_one_in_flight = true;
      other += stages() != named;
    }
  }
  EXPECT_GT(other, 10);
}

}  // namespace
}  // namespace pipec
