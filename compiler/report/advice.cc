#include "compiler/report/advice.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/cost/node_cost.h"
#include "compiler/cost/stage_links.h"
#include "runtime/base/format_size.h"

namespace pipec {
namespace {

constexpr double kFaster = 0.95;     // of the pipeline's step: an estimate has to be so much better
constexpr double kMuchBubble = 0.2;  // from here on more microbatches are worth a word
constexpr double kWorthIt = 0.75;    // of the bubble that is there: at most this much is left
constexpr int kMostTimes = 32;       // as many microbatches
constexpr double kUneven = 1.2;      // slowest stage over mean
constexpr double kHeavy = 0.25;      // share of a stage that one node takes

std::string Time(double seconds) {
  return seconds < 1 ? absl::StrFormat("%.3g ms", seconds * 1e3) : absl::StrFormat("%.3g s", seconds);
}

// The plan beside its alternatives, and what follows if the model fits one device.
void CompareWithOthers(const Module& module, const Report& report, std::vector<std::string>& advice) {
  if (report.alternatives.empty()) return;
  std::vector<std::string> others;
  for (const Alternative& other : report.alternatives) {
    others.push_back(absl::StrCat(
        other.name, " ", Time(other.step_seconds), ", ", FormatSize(other.sent_bytes), " sent, ",
        FormatSize(other.peak_bytes), " a device",
        other.peak_bytes > report.memory_limit && report.memory_limit > 0 ? ", which it does not have" : ""));
  }
  advice.push_back(absl::StrCat("a step on these ", report.shape.ranks, " devices: this pipeline ",
                                Time(report.step_seconds), ", ", FormatSize(report.sent_bytes), " sent, ",
                                FormatSize(report.peak_bytes), " a device; ", absl::StrJoin(others, "; "),
                                " (estimated from the same graph)"));
  const Alternative& data = report.alternatives[0];
  const int64_t needed = BytesOnOneDevice(module);
  if (report.memory_limit <= 0 || needed > report.memory_limit) return;
  const std::string fits = absl::StrCat("the model fits one device (", FormatSize(needed), " of ",
                                        FormatSize(report.memory_limit), ")");
  if (data.step_seconds < kFaster * report.step_seconds) {
    advice.push_back(
        absl::StrCat(fits, ": a pipeline gains only bubbles, data parallel over the same devices would take ",
                     Time(data.step_seconds), " a step instead of ", Time(report.step_seconds)));
  }
}

// The fewest microbatches that bring the bubble below kMuchBubble, or as near as it gets.
void MoreMicrobatches(const Module& module, const Cluster& cluster, const Report& report,
                      std::vector<std::string>& advice) {
  const ScheduleInfo* info = FindSchedule(module.schedule.name);
  if (!info || info->late_updates || report.bubble_ratio < kMuchBubble || report.shape.ranks < 2) return;
  std::vector<StageTimes> times;
  for (const Stage& stage : module.stages) times.push_back(stage.times);
  const std::vector<StageLink> links = StageLinks(module, cluster, module.mode == Mode::kTrain);
  ScheduleShape shape = report.shape;
  double bubble = report.bubble_ratio;
  for (int k = 2; k <= kMostTimes && bubble >= kMuchBubble; k *= 2) {
    ScheduleShape more = report.shape;
    more.microbatches *= k;
    const absl::StatusOr<Schedule> schedule = info->generate(more);
    if (!schedule.ok()) continue;
    const absl::StatusOr<Simulation> simulation = Simulate(*schedule, links, times);
    if (!simulation.ok() || simulation->bubble_ratio >= bubble) continue;
    bubble = simulation->bubble_ratio;
    shape = more;
  }
  // Where messages or one stage are the cause, more microbatches help little.
  if (bubble > kWorthIt * report.bubble_ratio) return;
  advice.push_back(absl::StrFormat(
      "M=%d is small for %d ranks: M=%d lowers the bubble from %.1f %% to %.1f %% (--microbatches=%d --batch=%d)",
      report.shape.microbatches, report.shape.ranks, shape.microbatches, report.bubble_ratio * 100, bubble * 100,
      shape.microbatches, report.batch / report.shape.microbatches * shape.microbatches));
}

// The heaviest node of a stage with its backward nodes, and what it takes.
std::pair<const Node*, double> HeaviestNode(const Module& module, const Cluster& cluster, int stage) {
  absl::flat_hash_map<const Node*, double> seconds;  // by forward node
  const DeviceProfile& device = cluster.devices[module.stages[stage].rank];
  for (const Node* node : module.graph.Nodes()) {
    if (node->stage == stage && node->kind != Kind::kU)
      seconds[node->kind == Kind::kF ? node : node->origin] += NodeSeconds(*node, device);
  }
  std::pair<const Node*, double> most = {nullptr, 0};
  for (const Node* node : module.graph.Nodes()) {
    const auto it = seconds.find(node);
    if (it != seconds.end() && it->second > most.second) most = *it;
  }
  return most;
}

void UnevenStages(const Module& module, const Cluster& cluster, const Report& report,
                  std::vector<std::string>& advice) {
  double sum = 0;
  const StageRow* slowest = nullptr;
  const auto seconds = [](const StageRow& row) { return row.forward_seconds + row.backward_seconds; };
  for (const StageRow& row : report.stages) {
    sum += seconds(row);
    if (!slowest || seconds(row) > seconds(*slowest)) slowest = &row;
  }
  const double mean = report.stages.empty() ? 0 : sum / static_cast<double>(report.stages.size());
  if (report.stages.size() < 2 || mean <= 0 || seconds(*slowest) < kUneven * mean) return;
  std::string text = absl::StrFormat("stage %d takes %.1f x the mean of all stages", slowest->stage,
                                     seconds(*slowest) / mean);
  const auto [node, time] = HeaviestNode(module, cluster, slowest->stage);
  if (node && time >= kHeavy * seconds(*slowest)) {
    absl::StrAppendFormat(&text, ": %.0f %% of it is node '%s' (%s)", 100 * time / seconds(*slowest),
                          node->name(), node->op());
    for (const Value* input : node->inputs()) {
      if (!input || input->kind() != ValueKind::kParameter) continue;
      absl::StrAppend(&text, " with parameter '", input->name(), "' of ", FormatSize(input->type.bytes()));
      break;
    }
    absl::StrAppend(&text, ", which no cut can divide");
  }
  advice.push_back(text);
}

void LongMessages(const Report& report, std::vector<std::string>& advice) {
  for (const StageRow& row : report.stages) {
    const double compute = row.forward_seconds + row.backward_seconds;
    if (row.message_seconds <= compute) continue;
    advice.push_back(absl::StrCat("stage ", row.stage, " sends and receives for ", Time(row.message_seconds),
                                  " a microbatch and computes for ", Time(compute),
                                  ": fewer --stages or faster links would be used better"));
    return;
  }
}

}  // namespace

std::vector<std::string> Advice(const Module& module, const Cluster& cluster, const Report& report) {
  std::vector<std::string> advice;
  CompareWithOthers(module, report, advice);
  MoreMicrobatches(module, cluster, report, advice);
  UnevenStages(module, cluster, report, advice);
  LongMessages(report, advice);
  return advice;
}

std::vector<std::string> AdviceOnChoice(const Report& report, int most_ranks) {
  const CandidateRow& chosen = report.candidates[0];
  if (chosen.shape.ranks > 1 || most_ranks == 1) return {};
  std::string text = absl::StrCat("the model fits one device (", FormatSize(report.peak_bytes), " of ",
                                  FormatSize(report.memory_limit),
                                  "), and of the plans for 1 to ", most_ranks,
                                  " ranks that of one is the fastest: a pipeline gains only bubbles");
  const auto pipeline = std::find_if(
      report.candidates.begin(), report.candidates.end(),
      [](const CandidateRow& row) { return row.shape.ranks > 1 && row.refusal.empty(); });
  if (pipeline != report.candidates.end()) {
    absl::StrAppendFormat(&text, ", the best one of %d ranks takes %.1f %% longer a sample", pipeline->shape.ranks,
                          100 * (pipeline->sample_seconds() / chosen.sample_seconds() - 1));
  }
  return {text};
}

}  // namespace pipec
