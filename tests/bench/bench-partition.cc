// How fast the slowest stage of a public graph is made, and how fast: `bench-partition FILE --format=NAME`. The
// solution is checked against the problem, and its slowest stage counted from the nodes and edges of the file.
// `bench-partition --drawn`: a table of the same for graphs that are drawn (wide_graphs.h), and for those of a
// folder of public ones, beside the best of many orders solved exactly.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/partition/fixed_order.h"
#include "compiler/partition/ideal_solver.h"
#include "compiler/partition/ideals.h"
#include "compiler/partition/lower_bound.h"
#include "compiler/partition/orders.h"
#include "compiler/partition/solve.h"
#include "runtime/base/status.h"
#include "tests/bench/partition_graph.h"
#include "tests/bench/wide_graphs.h"

namespace pipec::bench {
namespace {

constexpr char kUsage[] =
    "usage: bench-partition FILE --format=dnn-partitioning|pipedream [--stages=K] [--bandwidth=BYTES/S]\n"
    "                       [--orders=N] [--solution=OUT]\n"
    "       bench-partition --drawn [--data=FOLDER] [--only=TEXT] [--orders=N]\n"
    "--stages: at most so many (dnn-partitioning: what the file says; pipedream: 4)\n"
    "--bandwidth: of pipedream's messages (1e9)\n"
    "--orders: also the best of the exact solver's cuts of N orders drawn at random, and of N that go depth "
    "first\n"
    "--drawn: a table of drawn graphs, with 1000 such orders; --data: and of the public ones in this folder, "
    "also with other\n"
    "numbers of stages; --only: those with this in their name\n";

struct Flags {
  std::string file, format, solution, data, only;
  bool drawn = false;
  int stages = 0, orders = 0;
  double bandwidth = 1e9;
};

std::optional<Flags> Parse(int argc, char** argv) {
  Flags flags;
  for (int k = 1; k < argc; ++k) {
    absl::string_view arg = argv[k];
    bool good = true;
    if (absl::ConsumePrefix(&arg, "--format=")) {
      flags.format = std::string(arg);
      good = arg == "dnn-partitioning" || arg == "pipedream";
    } else if (absl::ConsumePrefix(&arg, "--stages=")) {
      good = absl::SimpleAtoi(arg, &flags.stages) && flags.stages > 0;
    } else if (absl::ConsumePrefix(&arg, "--bandwidth=")) {
      good = absl::SimpleAtod(arg, &flags.bandwidth) && flags.bandwidth > 0;
    } else if (absl::ConsumePrefix(&arg, "--orders=")) {
      good = absl::SimpleAtoi(arg, &flags.orders) && flags.orders > 0;
    } else if (arg == "--drawn") {
      flags.drawn = true;
    } else if (absl::ConsumePrefix(&arg, "--only=")) {
      flags.only = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--data=")) {
      flags.data = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--solution=")) {
      flags.solution = std::string(arg);
    } else {
      good = flags.file.empty() && arg.substr(0, 2) != "--";
      flags.file = std::string(arg);
    }
    if (!good) return std::nullopt;
  }
  if (flags.drawn ? !flags.file.empty() : flags.file.empty() || flags.format.empty()) return std::nullopt;
  return flags;
}

struct Result {
  std::vector<int> stage_of;  // by node
  double slowest = 0, bound = 0;
};

// With exactly so many stages.
absl::StatusOr<Result> Solve(const CostGraph& graph, int stages) {
  const GraphProblem made = MakeProblem(graph, stages);
  ASSIGN_OR_RETURN(const PartitionSolution solution, SolvePartition(made.problem));
  RETURN_IF_ERROR(CheckPartition(made.problem, solution));
  Result result;
  for (int item : made.item_of) result.stage_of.push_back(solution.stage_of[item]);
  result.slowest = SlowestStage(graph, result.stage_of);
  result.bound = solution.lower_bound;
  return result;
}

double LowerBound(const CostGraph& graph, int stages) {
  const PartitionProblem problem = MakeProblem(graph, stages).problem;
  return PartitionLowerBound(problem, MakeBlocks(problem));
}

// Of ideals: about a tenth of a second.
constexpr int kFewIdeals = 50'000, kPairs = 20'000'000;

// With at most so many: fewer are better where messages cost more than the work that they share out.
absl::StatusOr<Result> SolveAtMost(const CostGraph& graph, int most) {
  const PartitionProblem one = MakeProblem(graph, 1).problem;
  const Blocks blocks = MakeBlocks(one);
  most = std::min(most, MaxStages(one));
  ASSIGN_OR_RETURN(Result best, Solve(graph, most));
  std::optional<Ideals> ideals;
  for (int stages = most - 1; stages > 0 && LowerBound(graph, stages) < best.slowest * (1 - 1e-9); --stages) {
    // Most often it is enough to ask whether there is anything better.
    if (stages == most - 1) ideals = FindIdeals(blocks, kFewIdeals);
    if (ideals) {
      IdealSolver solver(blocks, *ideals, RulesOf(MakeProblem(graph, stages).problem), kPairs);
      if (solver.Probe(best.slowest * (1 - 1e-9)) == ThresholdSolver::Answer::kNo) continue;
    }
    const absl::StatusOr<Result> fewer = Solve(graph, stages);
    if (!fewer.ok()) continue;  // does not fit the memory
    const double bound = std::min(best.bound, fewer->bound);
    if (fewer->slowest < best.slowest) best = *fewer;
    best.bound = bound;
  }
  return best;
}

// The slowest stage of the best cut into at most so many stages that keeps one of the orders drawn at random.
double BestOfOrders(const CostGraph& graph, int most, int orders) {
  double best = std::numeric_limits<double>::infinity();
  for (int stages = std::min(most, MaxStages(MakeProblem(graph, 1).problem)); stages > 0; --stages) {
    const PartitionProblem problem = MakeProblem(graph, stages).problem;
    const Blocks blocks = MakeBlocks(problem);
    const StageRules rules = RulesOf(problem);
    const double low = PartitionLowerBound(problem, blocks);
    if (low >= best) break;
    const Orders drawn(blocks);
    std::mt19937_64 random(1);
    for (int k = 0; k < 2 * orders; ++k) {
      const Blocks ordered = Reorder(blocks, k % 2 ? drawn.Random(random) : drawn.DepthFirst(random));
      FixedOrderSolver solver(ordered, rules);
      if (!LeastBottleneck(solver, low, best).stage_of) continue;
      best = solver.bottleneck();
    }
  }
  return best;
}

// Figures of many graphs; narrow are those of few ideals. Seconds are the processor's.
struct Worst {
  double narrow_over_orders = 0, narrow_seconds = 0;
  double wide_over_best = 0,
         wide_seconds = 0;  // over the bound or the best of the orders, whichever is nearer
  int narrow_misses = 0, wide_misses = 0;
};

absl::Status Row(const NamedGraph& named, int orders, Worst& worst) {
  const CostGraph& graph = named.graph;
  const PartitionProblem problem = MakeProblem(graph, 1).problem;
  const std::optional<Ideals> ideals = FindIdeals(MakeBlocks(problem), kFewIdeals);
  const std::clock_t start = std::clock();
  const absl::StatusOr<Result> solved = SolveAtMost(graph, graph.stages);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (absl::IsResourceExhausted(solved.status())) {
    std::printf("%-28s does not fit the memory\n", named.name.c_str());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Result result, solved);
  const double best = BestOfOrders(graph, graph.stages, orders);
  const double over_bound = result.slowest / result.bound, over_orders = result.slowest / best;
  std::printf("%-28s %6zu %8s %12.6g %12.6g %9.4f %12.6g %9.4f %8.3f\n", named.name.c_str(),
              graph.nodes.size(), ideals ? std::to_string(ideals->size()).c_str() : ">50000", result.slowest,
              result.bound, over_bound, best, over_orders, seconds);
  std::fflush(stdout);
  const double over_best = std::min(over_bound, over_orders);
  if (ideals) {
    worst.narrow_over_orders = std::max(worst.narrow_over_orders, over_best);
    worst.narrow_seconds = std::max(worst.narrow_seconds, seconds);
    worst.narrow_misses += over_best > 1 + 1e-9;
  } else {
    worst.wide_over_best = std::max(worst.wide_over_best, over_best);
    worst.wide_seconds = std::max(worst.wide_seconds, seconds);
    worst.wide_misses += over_best > 1.01;
  }
  return absl::OkStatus();
}

// Those of the folder with what they name and other numbers of stages.
absl::StatusOr<std::vector<NamedGraph>> PublicGraphs(const std::string& folder, double bandwidth) {
  std::vector<NamedGraph> graphs;
  const auto add = [&](const std::string& name, const CostGraph& graph) {
    for (const int stages : std::set<int>{graph.stages, 2, 4, 8, 12, 16}) {
      graphs.push_back({absl::StrCat(name, "_", stages), graph});
      graphs.back().graph.stages = stages;
    }
  };
  for (const std::string name : {"LayerGraphs/bert24_training", "LayerGraphs/gnmt_training",
                                 "LayerGraphs/resnet50_training", "OperatorGraphs/bert_l-3_inference",
                                 "OperatorGraphs/bert_l-3_training", "OperatorGraphs/resnet50_inference"}) {
    ASSIGN_OR_RETURN(const CostGraph graph,
                     ReadDnnPartitioning(absl::StrCat(folder, "/dnn-partitioning/", name, ".json")));
    add(name.substr(name.find('/') + 1), graph);
  }
  for (const std::string name : {"gnmt", "resnet50", "vgg16"}) {
    ASSIGN_OR_RETURN(const CostGraph graph,
                     ReadPipedream(absl::StrCat(folder, "/pipedream/", name, "/graph.txt"), bandwidth));
    add(absl::StrCat("pipedream_", name), graph);
  }
  return graphs;
}

absl::Status RunDrawn(const Flags& flags) {
  std::vector<NamedGraph> graphs = WideGraphs();
  if (!flags.data.empty()) {
    ASSIGN_OR_RETURN(std::vector<NamedGraph> more, PublicGraphs(flags.data, flags.bandwidth));
    graphs.insert(graphs.begin(), more.begin(), more.end());
  }
  std::printf("%-28s %6s %8s %12s %12s %9s %12s %9s %8s\n", "graph_stages", "nodes", "ideals", "slowest",
              "bound", "/bound", "of orders", "/orders", "seconds");
  Worst worst;
  for (const NamedGraph& named : graphs) {
    if (named.name.find(flags.only) == std::string::npos) continue;
    RETURN_IF_ERROR(Row(named, flags.orders > 0 ? flags.orders : 1000, worst));
  }
  std::printf(
      "narrow_not_at_best %d graphs\nnarrow_worst_over_best %.6f ratio\nnarrow_worst_seconds %.3f s\n",
      worst.narrow_misses, worst.narrow_over_orders, worst.narrow_seconds);
  std::printf("wide_beyond_1_percent %d graphs\nwide_worst_over_best %.6f ratio\nwide_worst_seconds %.3f s\n",
              worst.wide_misses, worst.wide_over_best, worst.wide_seconds);
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags) {
  if (flags.drawn) return RunDrawn(flags);
  ASSIGN_OR_RETURN(CostGraph graph, flags.format == "pipedream" ? ReadPipedream(flags.file, flags.bandwidth)
                                                                : ReadDnnPartitioning(flags.file));
  if (flags.format == "pipedream") graph.stages = 4;
  if (flags.stages > 0) graph.stages = flags.stages;
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const Result result, SolveAtMost(graph, graph.stages));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!flags.solution.empty()) {
    nlohmann::json stage_of;
    for (size_t i = 0; i < graph.nodes.size(); ++i) stage_of[graph.nodes[i].id] = result.stage_of[i];
    std::ofstream out(flags.solution);
    out << nlohmann::json{{"stage_of", stage_of}}.dump() << "\n";
    if (!out) return absl::InternalError(absl::StrCat("cannot write ", flags.solution));
  }
  if (flags.orders > 0) {
    const double best = BestOfOrders(graph, graph.stages, flags.orders);
    std::printf("best_of_orders %.9g ms\nover_best_of_orders %.6f ratio\n", best, result.slowest / best);
  }
  std::printf("over_bound %.6f ratio\n", result.slowest / result.bound);
  std::printf("slowest_stage %.9g ms\nbound %.9g ms\nseconds %.3f s\n", result.slowest, result.bound,
              seconds);
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) {
  const std::optional<pipec::bench::Flags> flags = pipec::bench::Parse(argc, argv);
  if (!flags) {
    std::fputs(pipec::bench::kUsage, stderr);
    return 2;
  }
  const absl::Status status = pipec::bench::Run(*flags);
  if (!status.ok()) std::fprintf(stderr, "bench-partition: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
