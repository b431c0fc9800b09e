#include "compiler/report/advice.h"

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/cost/node_cost.h"
#include "compiler/cost/stage_links.h"
#include "runtime/base/format_size.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr double kFaster = 0.95;     // of the pipeline's step: an estimate has to be so much better
constexpr double kMuchBubble = 0.2;  // from here on more microbatches are worth a word
constexpr double kWorthIt = 0.75;    // of the bubble that is there: at most this much is left
constexpr int kMostTimes = 32;       // as many microbatches
constexpr double kUneven = 1.2;      // slowest rank over mean
constexpr double kLongSum =
    0.05;  // share of the step in which nothing but the sum over replicas is under way
constexpr double kHeavy = 0.25;      // share of a rank that one node takes

std::string Time(double seconds) {
  return seconds < 1 ? absl::StrFormat("%.3g ms", seconds * 1e3) : absl::StrFormat("%.3g s", seconds);
}

// A file's order is one for its ranks; auto finds one for any.
bool TakesReplicas(const std::string& schedule) {
  const ScheduleInfo* info = FindSchedule(schedule);
  return info ? !info->late_updates : schedule == "auto";
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
    const int ranks = report.shape.ranks, microbatches = report.shape.microbatches;
    const std::string how =
        microbatches % ranks != 0
            ? ""
            : absl::StrCat(" (--stages=1 --replicas=", ranks, " --microbatches=", microbatches / ranks,
                           " --batch=", report.batch, TakesReplicas(report.schedule) ? "" : " --schedule=1f1b", ")");
    advice.push_back(
        absl::StrCat(fits, ": a pipeline gains only bubbles, data parallel over the same devices would take ",
                     Time(data.step_seconds), " a step instead of ", Time(report.step_seconds), how));
  }
}

std::vector<StageTimes> TimesOf(const Module& module) {
  std::vector<StageTimes> times;
  for (const Stage& stage : module.stages) times.push_back(stage.times);
  return times;
}

// Whether the memory would do for a step that keeps other numbers of microbatches: all that is no parameter,
// gradient, state or constant is taken to grow as they do.
bool Fits(const Module& module, const Cluster& cluster, const std::vector<int>& kept,
          const std::vector<int>& kept_then) {
  for (size_t r = 0; r < module.memory.size(); ++r) {
    double growth = 1;
    for (size_t s = 0; s < module.stages.size(); ++s) {
      if (module.stages[s].rank == static_cast<int>(r))
        growth = std::max(growth, static_cast<double>(kept_then[s]) / std::max(kept[s], 1));
    }
    double always = 0;
    for (const Buffer& buffer : module.memory[r].buffers) {
      const bool stays = buffer.kind == BufferKind::kParameter || buffer.kind == BufferKind::kGradient ||
                         buffer.kind == BufferKind::kOptimizerState || buffer.kind == BufferKind::kConstant;
      if (stays) always += static_cast<double>(buffer.bytes);
    }
    const double arena = static_cast<double>(module.memory[r].arena_bytes);
    const double needed = always + std::max(arena - always, 0.0) * growth;
    const int64_t limit = cluster.devices[r].memory_bytes;
    if (growth > 1 && limit > 0 && needed > static_cast<double>(limit)) return false;
  }
  return true;
}

// The fewest microbatches that bring the bubble below kMuchBubble, or as near as it gets within the memory.
// A batch that is given does not grow: what smaller parts of it take is not known here.
void MoreMicrobatches(const Module& module, const Cluster& cluster, const Report& report, const Settled& settled,
                      std::vector<std::string>& advice) {
  if (settled.microbatches || (settled.batch && module.microbatch_size == 1)) return;
  const ScheduleInfo* info = FindSchedule(module.schedule.name);
  if (!info || info->late_updates || report.bubble_ratio < kMuchBubble || report.shape.ranks < 2) return;
  const std::vector<StageTimes> times = TimesOf(module);
  const std::vector<StageLink> links = StageLinks(module, cluster, module.mode == Mode::kTrain);
  const auto simulate = [&](const ScheduleShape& shape) -> absl::StatusOr<Simulation> {
    ASSIGN_OR_RETURN(const Schedule schedule, info->generate(shape));
    return Simulate(schedule, links, times);
  };
  const absl::StatusOr<Simulation> now = simulate(report.shape);
  if (!now.ok()) return;
  ScheduleShape shape = report.shape;
  double bubble = report.bubble_ratio;
  for (int k = 2; k <= kMostTimes && bubble >= kMuchBubble; k *= 2) {
    ScheduleShape more = report.shape;
    more.microbatches *= k;
    const absl::StatusOr<Simulation> then = simulate(more);
    if (!then.ok() || then->bubble_ratio >= bubble) continue;
    if (!settled.batch && !Fits(module, cluster, now->peak_activations, then->peak_activations)) break;
    bubble = then->bubble_ratio;
    shape = more;
  }
  // Where messages or one stage are the cause, more microbatches help little.
  if (bubble > kWorthIt * report.bubble_ratio) return;
  if (settled.batch) {
    advice.push_back(absl::StrFormat(
        "M=%d is small for %d ranks, which have a bubble of %.1f %%: --microbatches=auto finds how many parts of "
        "the batch take least time",
        report.shape.microbatches, report.shape.ranks, report.bubble_ratio * 100));
    return;
  }
  advice.push_back(absl::StrFormat(
      "M=%d is small for %d ranks: M=%d lowers the bubble from %.1f %% to %.1f %% (--microbatches=%d "
      "--batch=%d)",
      report.shape.microbatches, report.shape.ranks, shape.microbatches, report.bubble_ratio * 100,
      bubble * 100, shape.microbatches, report.batch / report.shape.microbatches * shape.microbatches));
}

// The heaviest node of a rank with its backward nodes, and what it takes.
std::pair<const Node*, double> HeaviestNode(const Module& module, const Cluster& cluster, int rank) {
  absl::flat_hash_map<const Node*, double> seconds;  // by forward node
  for (const Node* node : module.graph.Nodes()) {
    if (node->kind != Kind::kU && node->stage >= 0 && module.stages[node->stage].rank == rank)
      seconds[node->kind == Kind::kF ? node : node->origin] += NodeSeconds(*node, cluster.devices[rank]);
  }
  std::pair<const Node*, double> most = {nullptr, 0};
  for (const Node* node : module.graph.Nodes()) {
    const auto it = seconds.find(node);
    if (it != seconds.end() && it->second > most.second) most = *it;
  }
  return most;
}

// What the nodes of a rank would take on a device.
double SecondsOn(const Module& module, int rank, const DeviceProfile& device) {
  double seconds = 0;
  for (const Node* node : module.graph.Nodes()) {
    if (node->kind != Kind::kU && node->stage >= 0 && module.stages[node->stage].rank == rank)
      seconds += NodeSeconds(*node, device);
  }
  return seconds;
}

// Why a rank takes so long: that its device is slower than another which would make it `even` or less, or one node;
// "" if it is neither.
std::string CauseOf(const Module& module, const Cluster& cluster, int rank, double seconds, double even) {
  const DeviceProfile* fastest = &cluster.devices[rank];
  const double here = SecondsOn(module, rank, *fastest);
  double least = here;
  for (const DeviceProfile& device : cluster.devices) {
    const double there = SecondsOn(module, rank, device);
    if (there < least) least = there, fastest = &device;
  }
  if (seconds - (here - least) < even) {
    return absl::StrFormat(": its device, %s, takes %.1f x as long for it as %s would",
                           cluster.devices[rank].name, here / least, fastest->name);
  }
  const auto [node, time] = HeaviestNode(module, cluster, rank);
  if (!node || time < kHeavy * seconds) return "";
  std::string text =
      absl::StrFormat(": %.0f %% of it is node '%s' (%s)", 100 * time / seconds, node->name(), node->op());
  for (const Value* input : node->inputs()) {
    if (!input || input->kind() != ValueKind::kParameter) continue;
    absl::StrAppend(&text, " with parameter '", input->name(), "' of ", FormatSize(input->type.bytes()));
    break;
  }
  return text + ", which no cut can divide";
}

// Of ranks: that some of several stages a rank are heavier than others is no harm.
void UnevenRanks(const Module& module, const Cluster& cluster, const Report& report,
                 std::vector<std::string>& advice) {
  std::vector<double> seconds(report.shape.ranks, 0);
  for (const StageRow& row : report.stages) seconds[row.rank] += row.forward_seconds + row.backward_seconds;
  const auto slowest = std::max_element(seconds.begin(), seconds.end());
  const double mean =
      std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  if (seconds.size() < 2 || mean <= 0 || *slowest < kUneven * mean) return;
  const int rank = static_cast<int>(slowest - seconds.begin());
  std::string what = absl::StrCat("rank ", rank), all = "ranks";
  if (report.stages.size() == seconds.size()) {
    const auto row = std::find_if(report.stages.begin(), report.stages.end(),
                                  [rank](const StageRow& stage) { return stage.rank == rank; });
    what = absl::StrCat("stage ", row->stage);
    all = "stages";
  }
  advice.push_back(absl::StrFormat("%s takes %.1f x the mean of all %s%s", what, *slowest / mean, all,
                                   CauseOf(module, cluster, rank, *slowest, kUneven * mean)));
}

// Where links twice as fast would make the step shorter.
void LongMessages(const Module& module, const Cluster& cluster, const Report& report,
                  std::vector<std::string>& advice) {
  const auto row = std::find_if(report.stages.begin(), report.stages.end(), [](const StageRow& stage) {
    return stage.message_seconds > stage.forward_seconds + stage.backward_seconds;
  });
  if (row == report.stages.end() || module.schedule.asynchronous()) return;
  std::vector<StageLink> links = StageLinks(module, cluster, module.mode == Mode::kTrain);
  const std::vector<StageTimes> times = TimesOf(module);
  const absl::StatusOr<Simulation> now = Simulate(module.schedule, links, times);
  for (StageLink& link : links) link.seconds /= 2;
  const absl::StatusOr<Simulation> faster = Simulate(module.schedule, links, times);
  if (!now.ok() || !faster.ok() || faster->makespan > kFaster * now->makespan) return;
  advice.push_back(
      absl::StrCat("stage ", row->stage, " sends and receives for ", Time(row->message_seconds),
                   " a microbatch and computes for ", Time(row->forward_seconds + row->backward_seconds),
                   absl::StrFormat(": with links twice as fast a step would be %.0f %% shorter",
                                   100 * (now->makespan - faster->makespan) / report.step_seconds)));
}

// Where the sums over replicas go on long after the last rank has its gradients.
void LongSums(const Module& module, const Report& report, const Settled& settled, std::vector<std::string>& advice) {
  double computed = 0, summed = 0;
  for (const auto& slices : module.simulation.ranks) {
    for (const SimulatedAction& slice : slices) {
      if (IsCompute(slice.action.kind)) computed = std::max(computed, slice.end);
      if (slice.action.kind == ActionKind::kReduceGrad) summed = std::max(summed, slice.end);
    }
  }
  if (summed - computed <= kLongSum * report.step_seconds) return;
  advice.push_back(
      absl::StrFormat("the replicas' gradients are added up %s after the last of them is there, %.0f %% of the step%s",
                      Time(summed - computed), 100 * (summed - computed) / report.step_seconds,
                      settled.batch || settled.microbatches
                          ? ""
                          : ": more microbatches make that less, as the batch grows with them"));
}

}  // namespace

std::vector<std::string> Advice(const Module& module, const Cluster& cluster, const Report& report,
                                const Settled& settled) {
  std::vector<std::string> advice;
  CompareWithOthers(module, report, advice);
  MoreMicrobatches(module, cluster, report, settled, advice);
  UnevenRanks(module, cluster, report, advice);
  LongMessages(module, cluster, report, advice);
  LongSums(module, report, settled, advice);
  return advice;
}

std::vector<std::string> AdviceOnChoice(const Report& report, int most_ranks) {
  const CandidateRow& chosen = report.candidates[0];
  if (chosen.shape.ranks > 1 || most_ranks == 1) return {};
  std::string text =
      absl::StrCat("the model fits one device (", FormatSize(report.peak_bytes), " of ",
                   FormatSize(report.memory_limit), "), and of the plans for 1 to ", most_ranks,
                   " ranks that of one is the fastest: a pipeline gains only bubbles");
  const auto pipeline =
      std::find_if(report.candidates.begin(), report.candidates.end(),
                   [](const CandidateRow& row) { return row.shape.ranks > 1 && row.refusal.empty(); });
  if (pipeline != report.candidates.end()) {
    absl::StrAppendFormat(&text, ", the best one of %d ranks takes %.1f %% longer a sample",
                          pipeline->shape.ranks,
                          100 * (pipeline->sample_seconds() / chosen.sample_seconds() - 1));
  }
  return {text};
}

}  // namespace pipec
