#include "passes/recompute_stages.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "compiler/cost/node_cost.h"
#include "compiler/memory/recompute_choice.h"
#include "compiler/memory/segments.h"
#include "compiler/ops/op_info.h"
#include "compiler/schedule/rounds.h"
#include "passes/stage_forward.h"

namespace pipec {
namespace {

// Flops for each element of a result from which a node is a product, whose result is worth keeping.
constexpr double kProductFlops = 16;

// Bytes that stay, by rank: parameters in all their versions and what belongs to them.
std::vector<int64_t> StaticBytes(const PartitionProblem& problem, const std::vector<int>& stage_of) {
  std::vector<int64_t> bytes(problem.stages, 0);  // there are no more ranks than stages
  const auto rank_of = [&](int item) { return problem.rank_of_stage[stage_of[item]]; };
  const auto versions = [&problem](int stage) { return problem.versions.empty() ? 1 : problem.versions[stage]; };
  for (int i = 0; i < static_cast<int>(stage_of.size()); ++i)
    bytes[rank_of(i)] += problem.items[i].parameter_bytes + versions(stage_of[i]) * problem.items[i].weight_bytes;
  for (const PartitionShared& shared : problem.shared) {
    std::vector<int> stages;
    for (const int item : shared.items) stages.push_back(stage_of[item]);
    std::sort(stages.begin(), stages.end());
    stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
    for (const int stage : stages)
      bytes[problem.rank_of_stage[stage]] += shared.bytes + versions(stage) * shared.weight_bytes;
  }
  return bytes;
}

bool IsProduct(const Node& node) {
  int64_t elements = 0;
  for (const Value* output : node.outputs()) elements += output ? output->type.elements() : 0;
  return CostOf(node).flops >= kProductFlops * static_cast<double>(elements);
}

bool IsUsedBackward(const Value& value) {
  return std::any_of(value.uses().begin(), value.uses().end(), [](const Use& use) {
    if (use.node->kind == Kind::kI || use.node->kind == Kind::kW) return true;
    return use.node->kind == Kind::kF && AliasOf(*use.node) == Alias::kView &&
           IsUsedBackward(*use.node->output(0));
  });
}

// Of activations, what stays even if everything runs again: of k equal nodes in a row 2 / sqrt(k), which is taken
// here for all. It depends on the cut and on where values are kept.
double KeptShare(const PartitionProblem& problem) {
  return std::min(1.0, 2 / std::sqrt(static_cast<double>(problem.items.size()) / problem.stages));
}

int64_t MadeBytes(const Node& node) {
  int64_t bytes = 0;
  for (const Value* output : node.outputs()) bytes += output ? output->type.bytes() : 0;
  return AliasOf(node) == Alias::kView ? 0 : bytes;
}

}  // namespace

std::vector<int> InFlight(const Schedule& schedule, KeptFrom from) {
  if (schedule.asynchronous()) return InFlight(Unroll(schedule, LargestLag(schedule) + 2).schedule, from);
  std::vector<int> now(schedule.shape.stages(), 0), at_most(now.size(), 1);
  std::vector<bool> has_w(schedule.shape.stages(), false);
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      if (action.kind == ActionKind::kW) has_w[action.stage] = true;
    }
  }
  for (int r = 0; r < static_cast<int>(schedule.ranks.size()); ++r) {
    int all = 0, most = 0;  // of all stages of the rank
    for (const Action& action : schedule.ranks[r]) {
      const bool backward = action.kind == ActionKind::kB || action.kind == ActionKind::kI;
      if (from == KeptFrom::kForward ? action.kind == ActionKind::kF : backward) ++now[action.stage], ++all;
      if (all > most) {
        most = all;
        for (size_t s = 0; s < now.size(); ++s) {
          if (schedule.rank_of_stage[s] == r) at_most[s] = std::max(1, now[s]);
        }
      }
      const bool last = action.kind == ActionKind::kB || action.kind == ActionKind::kW ||
                        (action.kind == ActionKind::kI && !has_w[action.stage]);
      if (last) --now[action.stage], --all;
    }
  }
  return at_most;
}

PartitionProblem RecomputedEverywhere(const PartitionProblem& problem, const std::vector<StageTimes>& times,
                                      const Schedule& schedule) {
  PartitionProblem recomputed = problem;
  const int items = static_cast<int>(problem.items.size());
  const double share = KeptShare(problem);
  for (int k = 0; k < items; ++k) {
    recomputed.items[k].seconds += times[k].f;
    recomputed.items[k].activation_bytes = static_cast<int64_t>(share * recomputed.items[k].activation_bytes);
  }
  recomputed.in_flight = InFlight(schedule, KeptFrom::kBackward);
  return recomputed;
}

PartitionProblem Recomputable(const PartitionProblem& problem, const std::vector<StageTimes>& times) {
  PartitionProblem again = problem;
  const double kept = KeptShare(problem);
  double seconds = 0;  // of items of which nothing is kept, on the way to the next of which something is
  int64_t all_bytes = 0;
  struct Candidate {
    int item;
    PartitionRemake remake;
  };
  std::vector<Candidate> candidates;
  for (int k = 0; k < static_cast<int>(problem.items.size()); ++k) {
    seconds += times[k].f;
    PartitionItem& item = again.items[k];
    const int64_t bytes = item.activation_bytes - static_cast<int64_t>(kept * item.activation_bytes);
    if (bytes == 0) continue;
    item.activation_bytes -= bytes;
    candidates.push_back({k, {bytes, std::exchange(seconds, 0)}});
    all_bytes += bytes;
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.remake.seconds * static_cast<double>(b.remake.bytes) <
           b.remake.seconds * static_cast<double>(a.remake.bytes);
  });
  double before = 0;
  for (const Candidate& candidate : candidates) {
    again.items[candidate.item]
        .remake[std::min(kRemakeKinds - 1, static_cast<int>(before / all_bytes * kRemakeKinds))] =
        candidate.remake;
    before += static_cast<double>(candidate.remake.bytes);
  }
  return again;
}

// What can be done with a segment: option 0 keeps it.
struct RecomputePlanner::Segment {
  RecomputeUnit unit;
  std::vector<RecomputedSegment> ways;  // of the options from 1 on
};

RecomputePlanner::RecomputePlanner(const Module& module, const StageItems& items, const Schedule& schedule,
                                   const Cluster& cluster)
    : module_(module), items_(items), schedule_(schedule), cluster_(cluster) {}

std::vector<std::vector<RecomputePlanner::Segment>> RecomputePlanner::Describe(
    const std::vector<int>& stage_of) const {
  const int stages = static_cast<int>(schedule_.rank_of_stage.size());
  std::vector<std::vector<Node*>> forward(stages), backward(stages);
  for (Node* node : module_.graph.Nodes()) {
    const int item = items_.item_of[node->index];
    if (item >= 0) (node->kind == Kind::kF ? forward : backward)[stage_of[item]].push_back(node);
  }
  const std::vector<int> in_flight = InFlight(schedule_, KeptFrom::kForward),
                         remade_in_flight = InFlight(schedule_, KeptFrom::kBackward);
  std::vector<std::vector<Segment>> result(stages);
  for (int s = 0; s < stages; ++s) {
    const StageForward stage(std::move(forward[s]), std::move(backward[s]));
    std::vector<int> ends = CutSegments(stage.Segments(in_flight[s]));
    for (int& end : ends) ++end;
    ends.push_back(static_cast<int>(stage.nodes().size()));
    int begin = 0;
    for (const int end : ends) {
      Segment& segment = result[s].emplace_back();
      const RecomputedSegment nodes{{stage.nodes().begin() + begin, stage.nodes().begin() + end}, {}};
      int64_t kept_bytes = 0, crossing_bytes = 0, products_bytes = 0;
      RecomputedSegment but_products = nodes;
      std::vector<char> none(stage.nodes().size(), 0), products = none;
      for (int k = begin; k < end; ++k) {
        Node* node = stage.nodes()[k];
        if (AliasOf(*node) == Alias::kView) continue;
        if (IsProduct(*node)) products[k] = 1, but_products.kept.push_back(node);
        for (const Value* output : node->outputs()) {
          if (!output) continue;
          const bool crosses = stage.LastPlace(*output, k) >= end;
          if (crosses || IsUsedBackward(*output)) kept_bytes += output->type.bytes();
          if (crosses) crossing_bytes += output->type.bytes();
          if (crosses || products[k]) products_bytes += output->type.bytes();
        }
      }
      segment.unit.push_back({0, in_flight[s] * kept_bytes, 0});
      const auto add = [&](const RecomputedSegment& way, const std::vector<char>& kept, int64_t bytes) {
        RecomputeOption option{0, in_flight[s] * bytes, 0};
        for (const int place : stage.ToRunAgain(begin, end, kept)) {
          option.seconds += NodeSeconds(*stage.nodes()[place], cluster_.devices[schedule_.rank_of_stage[s]]);
          option.remade += MadeBytes(*stage.nodes()[place]);
        }
        if (option.remade == 0) return;
        // From I to W several microbatches may be under way, each with its own.
        if (remade_in_flight[s] > 1) option.bytes += std::exchange(option.remade, 0) * remade_in_flight[s];
        segment.unit.push_back(option);
        segment.ways.push_back(way);
      };
      add(but_products, products, products_bytes);
      add(nodes, none, crossing_bytes);
      begin = end;
    }
  }
  return result;
}

RecomputePlan RecomputePlanner::Everything(const std::vector<int>& stage_of) const {
  RecomputePlan plan;
  for (const std::vector<Segment>& stage : Describe(stage_of)) {
    plan.recomputed.emplace_back();
    plan.seconds.push_back(0);
    for (const Segment& segment : stage) {
      if (segment.ways.empty()) continue;
      plan.recomputed.back().push_back(segment.ways.back());
      plan.seconds.back() += segment.unit.back().seconds;
    }
  }
  return plan;
}

RecomputePlan RecomputePlanner::ToFit(const std::vector<int>& stage_of,
                                      const std::vector<int64_t>& limits) const {
  const std::vector<std::vector<Segment>> segments = Describe(stage_of);
  const int stages = static_cast<int>(segments.size());
  const std::vector<int64_t> fixed = StaticBytes(items_.problem, stage_of);
  RecomputePlan plan{std::vector<std::vector<RecomputedSegment>>(stages), std::vector<double>(stages, 0),
                     true};
  for (int rank = 0; rank < static_cast<int>(limits.size()); ++rank) {
    std::vector<std::pair<int, const Segment*>> of_rank;  // with their stage
    std::vector<RecomputeUnit> units;
    for (int s = 0; s < stages; ++s) {
      if (schedule_.rank_of_stage[s] != rank) continue;
      for (const Segment& segment : segments[s]) {
        of_rank.push_back({s, &segment});
        units.push_back(segment.unit);
      }
    }
    std::optional<std::vector<int>> choice = ChooseRecompute(units, limits[rank] - fixed[rank]);
    if (!choice) {
      plan.fits = false;
      choice.emplace();
      for (const RecomputeUnit& unit : units) choice->push_back(static_cast<int>(unit.size()) - 1);
    }
    for (size_t u = 0; u < units.size(); ++u) {
      const auto& [stage, segment] = of_rank[u];
      const int option = (*choice)[u];
      if (option == 0) continue;
      plan.recomputed[stage].push_back(segment->ways[option - 1]);
      plan.seconds[stage] += units[u][option].seconds;
    }
  }
  return plan;
}

bool FitsMemory(const PartitionProblem& problem, const std::vector<int>& stage_of,
                const std::vector<int64_t>& limits) {
  std::vector<int64_t> bytes = StaticBytes(problem, stage_of);
  for (size_t i = 0; i < stage_of.size(); ++i) {
    const int stage = stage_of[i];
    bytes[problem.rank_of_stage[stage]] += problem.in_flight[stage] * problem.items[i].activation_bytes;
  }
  for (size_t r = 0; r < limits.size(); ++r) {
    if (bytes[r] > limits[r]) return false;
  }
  return true;
}

}  // namespace pipec
