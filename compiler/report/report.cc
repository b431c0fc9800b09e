#include "compiler/report/report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/cost/node_cost.h"
#include "compiler/ir/validate_at.h"
#include "compiler/ops/op_info.h"
#include "compiler/report/advice.h"

namespace pipec {
namespace {

// Of the messages between ranks that say least.
Origin MessageOrigin(const Module& module, const Cluster& cluster) {
  std::set<std::pair<int, int>> pairs;
  for (const Message& message : module.messages) {
    const int from = module.stages[message.from_stage].rank, to = module.stages[message.to_stage].rank;
    if (from != to) pairs.insert({from, to});
  }
  if (pairs.empty()) pairs.insert({0, 0});
  Origin least = Origin::kMeasured;
  for (const auto& [from, to] : pairs) least = std::min(least, cluster.LinkBetween(from, to).origin);
  return least;
}

// Where steps overlap it is the longest span of a rank (passes/simulate_update.h).
std::string SpanOfStep(const Module& module) {
  const bool overlap = module.schedule.asynchronous() || !ValidateAt(module).empty();
  return absl::StrCat(overlap ? "the longest span of a rank" : "until the last rank is done",
                      module.mode == Mode::kTrain ? ", update included" : "");
}

}  // namespace

Report MakeReport(const Module& module, const Cluster& cluster, const Settled& settled) {
  Report report;
  report.model = module.model_name;
  report.schedule = module.schedule.name;
  report.mode = module.mode;
  report.precision = module.precision;
  if (module.mode == Mode::kTrain) report.optimizer = module.training.optimizer;
  report.device = cluster.DeviceNames();
  for (const DeviceProfile& device : cluster.devices) {
    if (report.memory_limit == 0 || device.memory_bytes < report.memory_limit)
      report.memory_limit = device.memory_bytes;
  }
  report.shape = module.schedule.shape;
  report.replicas = module.replicas;
  report.batch = module.microbatch_size * report.shape.microbatches * module.replicas;
  report.notes = module.notes;

  report.origins = OriginsOf(module, cluster);
  report.message_origin = MessageOrigin(module, cluster);
  const int stages = static_cast<int>(module.stages.size());
  report.stages.resize(stages);
  std::vector<std::set<const Value*>> parameters(stages);
  std::vector<double> loads(stages, 0);  // by rank, as the partitioner counts them; no more ranks than stages
  for (const Node* node : module.graph.Nodes()) {
    if (node->stage < 0 || node->stage >= stages || node->Is("Message", kPipecDomain)) continue;
    StageRow& row = report.stages[node->stage];
    ++row.nodes;
    const NodeTime time = TimeOf(*node, cluster.devices[module.stages[node->stage].rank]);
    if (node->kind != Kind::kU) Add(time, 1, row.origins);
    if (node->kind != Kind::kU) row.flop += CostOf(*node).flops;
    if (node->kind == Kind::kU && module.schedule.asynchronous())
      loads[module.stages[node->stage].rank] += time.seconds / report.shape.microbatches;
    if (node->kind != Kind::kF) continue;
    for (const Value* input : node->inputs()) {
      if (input && input->kind() == ValueKind::kParameter) parameters[node->stage].insert(input);
    }
  }
  for (int s = 0; s < stages; ++s) {
    StageRow& row = report.stages[s];
    row.stage = s;
    row.rank = module.stages[s].rank;
    row.device = cluster.devices[row.rank].name;
    row.memory_limit = cluster.devices[row.rank].memory_bytes;
    row.forward_seconds = module.stages[s].times.f;
    row.backward_seconds = module.stages[s].times.i + module.stages[s].times.w;
    for (const Value* parameter : parameters[s]) row.parameters += parameter->type.elements();
    if (row.rank < static_cast<int>(module.memory.size())) {
      row.peak_bytes = module.memory[row.rank].arena_bytes;
      row.live_bytes = module.memory[row.rank].lower_bound;
      row.workspace_bytes = module.memory[row.rank].workspace_bytes;
    }
    report.peak_bytes = std::max(report.peak_bytes, row.peak_bytes);
    report.workspace_bytes = std::max(report.workspace_bytes, row.workspace_bytes);
    loads[row.rank] += row.forward_seconds + row.backward_seconds;
  }
  // Each tensor once a stage, by the slowest of its links; added up in their order.
  std::vector<std::pair<int, double>> of_stages;
  std::map<std::pair<int, const Value*>, size_t> place;
  for (const Message& message : module.messages) {
    if (message.kind != MessageKind::kActivation && message.kind != MessageKind::kGradient) continue;
    for (const Value* value : message.node->inputs()) {
      report.stages[message.from_stage].sent_bytes += value->type.bytes();
      const Link link =
          cluster.LinkBetween(report.stages[message.from_stage].rank, report.stages[message.to_stage].rank);
      for (int stage : {message.from_stage, message.to_stage}) {
        const auto [it, added] = place.emplace(std::pair(stage, value), of_stages.size());
        if (added) of_stages.push_back({stage, 0});
        double& seconds = of_stages[it->second].second;
        seconds = std::max(seconds, MessageSeconds(value->type.bytes(), link));
      }
    }
  }
  for (const auto& [stage, seconds] : of_stages) {
    report.stages[stage].message_seconds += seconds;
    loads[module.stages[stage].rank] += seconds;
  }
  report.bubble_ratio = module.simulation.bubble_ratio;
  report.step_seconds = module.simulation.step_seconds;
  report.step_span = SpanOfStep(module);
  if (module.partition_bound > 0) {
    report.bound_seconds = module.partition_bound;
    report.bound_ratio = *std::max_element(loads.begin(), loads.end()) / module.partition_bound;
  }
  report.sent_bytes = SentBytes(module);
  // Of several replicas they would be other ways to use the devices of one.
  if (module.replicas == 1) report.alternatives = Alternatives(module, cluster);
  report.advice = Advice(module, cluster, report, settled);
  return report;
}

}  // namespace pipec
