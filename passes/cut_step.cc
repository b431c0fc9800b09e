#include "passes/cut_step.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/cost/node_cost.h"
#include "compiler/ops/op_info.h"
#include "compiler/schedule/late_validation.h"
#include "compiler/schedule/timeline.h"

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// An action or a message of the timeline takes about as long as so many items or tensors.
constexpr int64_t kOfTimeline = 16;
constexpr int kGradientOperand = 1;  // of optimizer ops: (p, g, states..., scale)

bool Runs(const Schedule& schedule, ActionKind kind) {
  return absl::c_any_of(schedule.ranks, [kind](const std::vector<Action>& list) {
    return absl::c_any_of(list, [kind](const Action& action) { return action.kind == kind; });
  });
}

// When the last compute action of each rank ends.
class Ends : public TimelineObserver {
 public:
  explicit Ends(int ranks) : of_rank(ranks, 0) {}

  void Compute(int rank, int, double, double end) override { of_rank[rank] = std::max(of_rank[rank], end); }
  void Message(int, int, double, double) override {}

  std::vector<double> of_rank;
};

// The update nodes that add up the gradients of the uses of a parameter.
void CollectSum(const Value* value, absl::flat_hash_set<const Node*>& sum) {
  const Node* node = value->producer();
  if (!node || node->kind != Kind::kU || !sum.insert(node).second) return;
  for (const Value* input : node->inputs()) {
    if (input) CollectSum(input, sum);
  }
}

}  // namespace

CutStep::CutStep(const Module& module, const StageItems& items, const Schedule& schedule,
                 const Cluster& cluster)
    : items_(items), schedule_(schedule), cluster_(cluster) {
  splits_ = Runs(schedule, ActionKind::kW);
  backward_ = splits_ || Runs(schedule, ActionKind::kB) || Runs(schedule, ActionKind::kI);
  one_stage_a_rank_ = schedule.shape.virtual_stages == 1;
  waits_ = module.training.has_norm && schedule.shape.ranks > 1;
  for (const Node* node : items.nodes) repeats_.push_back(AliasOf(*node) != Alias::kSameMemory);
  const auto add = [&](const Node& node, std::vector<double>& seconds) {
    seconds.resize(items.times_on.size(), 0);
    std::vector<char> seen(seconds.size(), 0);
    for (size_t rank = 0; rank < items.kind_of_rank.size(); ++rank) {
      const int kind = items.kind_of_rank[rank];
      if (!std::exchange(seen[kind], 1)) seconds[kind] += NodeSeconds(node, cluster.devices[rank]);
    }
  };
  for (const TrainedParameter& trained : module.training.parameters) {
    ParameterUpdate& update = parameters_.emplace_back();
    for (const Use& use : trained.parameter->uses()) {
      if (const int item = items.item_of[use.node->index]; item >= 0) update.users.push_back(item);
    }
    absl::c_sort(update.users);
    update.users.erase(std::unique(update.users.begin(), update.users.end()), update.users.end());
    const Value* gradient = trained.updates[0]->input(kGradientOperand);
    update.bytes = gradient->type.bytes();
    absl::flat_hash_set<const Node*> sum;
    CollectSum(gradient, sum);
    update.sum.resize(items.times_on.size(), 0);
    for (const Node* node : sum) add(*node, update.sum);
    add(*trained.updates[0], update.update);
    update.norm.resize(items.times_on.size(), 0);
    for (const Use& use : gradient->uses()) {
      if (use.node->Is("SquaredNorm", kPipecDomain)) add(*use.node, update.norm);
    }
  }
  for (const Node* scale : module.training.gradient_scales) add(*scale, scale_);
  scale_.resize(items.times_on.size(), 0);
  if (!waits_) return;
  const double bytes = static_cast<double>(parameters_.size() * sizeof(double)) / schedule.shape.ranks;
  for (const Link& link : cluster.Links())
    norm_message_ = std::max(norm_message_, MessageSeconds(bytes, link));
}

std::vector<StageTimes> CutStep::Times(const std::vector<int>& stage_of) const {
  std::vector<StageTimes> times;
  for (const int rank : schedule_.rank_of_stage) {
    const double seconds = ActionSeconds(cluster_.devices[rank]);  // B is I + W at once
    times.push_back({seconds, backward_ ? seconds : 0, splits_ ? seconds : 0});
  }
  for (size_t i = 0; i < stage_of.size(); ++i) {
    StageTimes& stage = times[stage_of[i]];
    const StageTimes& item = items_.times_on[items_.kind_of_rank[schedule_.rank_of_stage[stage_of[i]]]][i];
    stage.f += item.f;
    stage.i += item.i;
    stage.w += item.w;
  }
  return times;
}

CutStep::OnceAStep CutStep::Once(const std::vector<int>& stage_of) const {
  OnceAStep once{std::vector<double>(schedule_.shape.stages(), 0),
                 std::vector<double>(schedule_.shape.stages(), 0),
                 std::vector<char>(schedule_.shape.ranks, 0)};
  std::map<std::pair<int, int>, int64_t> tied_bytes;  // by two ranks, from and to
  std::vector<char> ready(schedule_.shape.ranks, 0);
  for (size_t s = 0; s < once.norms.size(); ++s) {
    const int rank = schedule_.rank_of_stage[s];
    if (parameters_.empty() || std::exchange(ready[rank], 1)) continue;
    if (waits_) once.norms[s] = cluster_.devices[rank].launch_seconds;  // its norms, put in one message
    if (waits_) once.updates[s] = scale_[items_.kind_of_rank[rank]];
  }
  std::map<int, int> owners;  // by rank, its first stage that has the parameter
  for (const ParameterUpdate& parameter : parameters_) {
    owners.clear();
    for (const int item : parameter.users) {
      const int stage = stage_of[item];
      int& first = owners.emplace(schedule_.rank_of_stage[stage], stage).first->second;
      first = std::min(first, stage);
    }
    bool is_first = true;
    for (const auto& [rank, stage] : owners) {
      const int kind = items_.kind_of_rank[rank];
      once.norms[stage] += parameter.sum[kind] + (std::exchange(is_first, false) ? parameter.norm[kind] : 0);
      once.updates[stage] += parameter.update[kind];
    }
    if (owners.size() < 2) continue;
    for (const auto& [to, stage] : owners) {
      once.tied[to] = 1;
      for (const int item : parameter.users) {
        const int from = schedule_.rank_of_stage[stage_of[item]];
        if (from != to) tied_bytes[{from, to}] += parameter.bytes;
      }
    }
  }
  for (const auto& [ranks, bytes] : tied_bytes) {
    const Link link = cluster_.LinkBetween(ranks.first, ranks.second);
    once.tied_message = std::max(once.tied_message, MessageSeconds(static_cast<double>(bytes), link));
  }
  return once;
}

std::vector<StageLink> CutStep::Links(const std::vector<int>& stage_of) const {
  std::map<std::pair<int, int>, int64_t> bytes;  // by the stages that send and receive
  std::set<int> others;
  for (size_t t = 0; t < items_.sender.size(); ++t) {
    const int from = stage_of[items_.sender[t]];
    others = {stage_of[items_.problem.tensors[t].producer]};
    for (const int consumer : items_.problem.tensors[t].consumers) others.insert(stage_of[consumer]);
    others.erase(from);
    for (const int other : others) bytes[{from, other}] += items_.tensor_bytes[t];
  }
  std::vector<StageLink> links;
  for (const auto& [stages, sent] : bytes) {
    const Link link =
        cluster_.LinkBetween(schedule_.rank_of_stage[stages.first], schedule_.rank_of_stage[stages.second]);
    links.push_back({stages.first, stages.second, MessageSeconds(sent, link)});
  }
  return links;
}

double CutStep::LeastSeconds(const std::vector<StageTimes>& times, const OnceAStep& once) const {
  const int microbatches = schedule_.shape.microbatches;
  std::vector<double> loads(cluster_.devices.size(), 0);
  for (size_t s = 0; s < times.size(); ++s) {
    double& load = loads[schedule_.rank_of_stage[s]];
    load += microbatches * (times[s].f + times[s].i + times[s].w) + once.norms[s] + once.updates[s];
  }
  double most = *std::max_element(loads.begin(), loads.end());
  if (!one_stage_a_rank_ || splits_ || schedule_.asynchronous()) return most;
  double around = 0;  // until the first forward reaches a stage, and from when the last gradient leaves it
  for (size_t s = 0; s < times.size(); ++s) {
    const int rank = schedule_.rank_of_stage[s];
    most = std::max(most, around + loads[rank] - once.norms[s] - once.updates[s]);
    around += times[s].f + times[s].i + times[s].w;
  }
  return most;
}

double CutStep::Rounds(std::vector<StageTimes> times, const OnceAStep& once,
                       const std::vector<StageLink>& links) const {
  for (size_t s = 0; s < times.size(); ++s)
    times[s].w += (once.norms[s] + once.updates[s]) / schedule_.shape.microbatches;
  const absl::StatusOr<Schedule> with_messages = AddMessages(schedule_, links, times);
  if (!with_messages.ok()) return kInfinity;
  const absl::StatusOr<Simulation> simulation = Simulate(*with_messages, links, times);
  return simulation.ok() ? simulation->step_seconds : kInfinity;
}

double CutStep::AfterLast(const std::vector<double>& last, const OnceAStep& once, std::vector<double>& done,
                          double& norms) const {
  done = last;
  double tied = 0;  // when the gradients of shared parameters have come
  for (size_t r = 0; r < done.size(); ++r)
    tied = std::max(tied, once.tied[r] ? done[r] + once.tied_message : 0);
  for (size_t r = 0; r < done.size(); ++r) done[r] = once.tied[r] ? tied : done[r];
  for (size_t s = 0; s < once.norms.size(); ++s) done[schedule_.rank_of_stage[s]] += once.norms[s];
  norms = *std::max_element(done.begin(), done.end()) + norm_message_;
  double waiting = 0;
  std::vector<double> updates(done.size(), 0);
  for (size_t s = 0; s < once.updates.size(); ++s) updates[schedule_.rank_of_stage[s]] += once.updates[s];
  for (size_t r = 0; r < done.size(); ++r) {
    waiting = std::max(waiting, (waits_ ? norms : done[r]) + updates[r]);
    done[r] += updates[r];
  }
  return waiting;
}

double CutStep::Step(const std::vector<StageTimes>& times, const OnceAStep& once,
                     const std::vector<StageLink>& links) const {
  Ends ends(schedule_.shape.ranks);
  if (!RunTimeline(schedule_, links, times, ends).ok()) return kInfinity;
  std::vector<double> done;
  double norms = 0;
  return AfterLast(ends.of_rank, once, done, norms);
}

double CutStep::LateStep(const std::vector<int>& stage_of, const std::vector<StageTimes>& times,
                         const OnceAStep& once, const std::vector<StageLink>& links) const {
  const absl::StatusOr<Schedule> with_messages = AddMessages(schedule_, links, times);
  if (!with_messages.ok()) return kInfinity;
  const absl::StatusOr<Simulation> simulation = Simulate(*with_messages, links, times);
  if (!simulation.ok()) return kInfinity;
  std::vector<double> last(schedule_.shape.ranks, 0), done;
  for (size_t r = 0; r < last.size(); ++r) {
    for (const SimulatedAction& slice : simulation->ranks[r]) last[r] = std::max(last[r], slice.end);
  }
  double norms = 0;
  const double waiting = AfterLast(last, once, done, norms);
  std::vector<bool> repeats(times.size(), true);
  for (size_t i = 0; i < stage_of.size(); ++i) {
    if (!repeats_[i]) repeats[stage_of[i]] = false;
  }
  const std::vector<int> places = LatestValidation(*with_messages, repeats);
  if (places.empty()) return waiting;
  double seconds = 0;
  for (size_t r = 0; r < done.size(); ++r) {
    double begin = done[r], validated = done[r];
    for (size_t k = 0; k < simulation->ranks[r].size(); ++k) {
      const SimulatedAction& slice = simulation->ranks[r][k];
      if (!IsCompute(slice.action.kind)) continue;
      begin = std::min(begin, slice.start);
      if (static_cast<int>(k) >= places[r]) validated = std::min(validated, slice.start);
    }
    seconds = std::max({seconds, done[r] - begin, norms - validated});
  }
  return std::min(seconds, waiting);
}

double CutStep::Of(const std::vector<int>& stage_of, absl::Span<const double> again, double below) const {
  steps_ += static_cast<int64_t>(stage_of.size() + items_.sender.size() + parameters_.size());
  std::vector<StageTimes> times = Times(stage_of);
  for (size_t s = 0; s < again.size(); ++s) times[s].i += again[s];
  const OnceAStep once = Once(stage_of);
  if (LeastSeconds(times, once) >= below) return kInfinity;
  const std::vector<StageLink> links = Links(stage_of);
  const bool late = waits_ && splits_;
  int64_t events = static_cast<int64_t>(links.size()) * schedule_.shape.microbatches;
  for (const std::vector<Action>& list : schedule_.ranks) events += static_cast<int64_t>(list.size());
  steps_ += (late || schedule_.asynchronous() ? 3 : 1) * kOfTimeline * events;
  const double seconds = schedule_.asynchronous() ? Rounds(std::move(times), once, links)
                         : late                   ? LateStep(stage_of, times, once, links)
                                                  : Step(times, once, links);
  return seconds < below ? seconds : kInfinity;
}

}  // namespace pipec
