// How fast the slowest stage of a public graph is made, and how fast: `bench-partition FILE --format=NAME`. The
// solution is checked against the problem, and its slowest stage counted from the nodes and edges of the file.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/partition/fixed_order.h"
#include "compiler/partition/lower_bound.h"
#include "compiler/partition/orders.h"
#include "compiler/partition/solve.h"
#include "runtime/base/status.h"
#include "tests/bench/partition_graph.h"

namespace pipec::bench {
namespace {

constexpr char kUsage[] =
    "usage: bench-partition FILE --format=dnn-partitioning|pipedream [--stages=K] [--bandwidth=BYTES/S]\n"
    "                       [--orders=N] [--solution=OUT]\n"
    "--stages: at most so many (dnn-partitioning: what the file says; pipedream: 4)\n"
    "--bandwidth: of pipedream's messages (1e9)\n"
    "--orders: also the best of the exact solver's cuts of N orders drawn at random, and of N that go depth first\n";

struct Flags {
  std::string file, format, solution;
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
    } else if (absl::ConsumePrefix(&arg, "--solution=")) {
      flags.solution = std::string(arg);
    } else {
      good = flags.file.empty() && arg.substr(0, 2) != "--";
      flags.file = std::string(arg);
    }
    if (!good) return std::nullopt;
  }
  if (flags.file.empty() || flags.format.empty()) return std::nullopt;
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

// With at most so many: fewer are better where messages cost more than the work that they share out.
absl::StatusOr<Result> SolveAtMost(const CostGraph& graph, int most) {
  most = std::min(most, MaxStages(MakeProblem(graph, 1).problem));
  ASSIGN_OR_RETURN(Result best, Solve(graph, most));
  for (int stages = most - 1; stages > 0 && LowerBound(graph, stages) < best.slowest; --stages) {
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

absl::Status Run(const Flags& flags) {
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
