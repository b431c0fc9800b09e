#include "compiler/partition/device_solver.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "compiler/partition/stage_fit.h"

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A cut must be so much better than another to be worth being found.
constexpr double kBetter = 1 - 1e-10;
// Of ideals of which one does not lie in the other.
constexpr int64_t kPairsAStep = 4;
constexpr size_t kMostBytes = 256 << 20;  // of labels

}  // namespace

std::vector<int> AllPlaces(const Ideals& ideals) {
  std::vector<int> places(ideals.size());
  std::iota(places.begin(), places.end(), 0);
  return places;
}

DeviceSolver::DeviceSolver(const PartitionProblem& problem, const Blocks& blocks, const Ideals& ideals,
                           std::vector<int> places, const DeviceSearch& search)
    : problem_(problem),
      blocks_(blocks),
      ideals_(ideals),
      S_(problem.stages),
      ranks_(Ranks(problem)),
      rules_(RulesOf(problem)),
      places_(std::move(places)),
      search_(search),
      costs_(blocks, ideals),
      ranks_to_come_(S_ + 1),
      speed_to_come_(S_ + 1, 0),
      some_behind_(places_.size(), 0),
      grown_devices_(ranks_) {
  for (const int place : places_) {
    seconds_.push_back(static_cast<double>(ideals.ideals[place].seconds));
    crossing_.push_back(static_cast<double>(ideals.ideals[place].crossing_seconds));
  }
  for (int s = 0; s < S_; ++s) rank_of_.push_back(RankOf(problem, s));
  for (int rank = 0; rank < ranks_; ++rank) {
    speed_.push_back(SpeedOf(problem, rank));
    fastest_ = std::max(fastest_, speed_.back());
    slowest_ = std::min(slowest_, speed_.back());
    const int64_t memory = MemoryOf(problem, rank);
    memory_.push_back(memory == kNoCap ? kInfinity : static_cast<double>(memory));
  }
  for (int s = S_ - 1; s >= 0; --s) {
    std::vector<int>& ranks = ranks_to_come_[s];
    ranks = ranks_to_come_[s + 1];
    speed_to_come_[s] = speed_to_come_[s + 1];
    if (std::find(ranks.begin(), ranks.end(), rank_of_[s]) != ranks.end()) continue;
    ranks.push_back(rank_of_[s]);
    speed_to_come_[s] += speed_[rank_of_[s]];
  }
}

double DeviceSolver::Seconds(int rank, const Device& device) const {
  if (memory_[rank] == kInfinity) return device.seconds;
  return device.seconds + device.kept.RemakeSeconds(memory_[rank]) / speed_[rank];
}

// By itself; infinity if it does not fit its device.
double DeviceSolver::StageSeconds(int stage, const StageCost& cost) const {
  const int rank = rank_of_[stage];
  if (BytesOf(cost.bytes, rules_.copies[stage]) > memory_[rank]) return kInfinity;
  return cost.compute / speed_[rank] + cost.messages;
}

// No cut goes below this, whichever stages hold the blocks in front of the place.
double DeviceSolver::LeastThrough(int place, int stages) const {
  const double front = seconds_[place] + slowest_ * crossing_[place];
  const double most = (front + work_behind_[At(place, stages)]) / speed_to_come_[0];
  if (problem_.microbatches == 0) return most;
  return front / fastest_ + seconds_behind_[At(place, stages)] + (problem_.microbatches - 1) * most;
}

bool DeviceSolver::FindBehind() {
  const int n = blocks_.size(), last = static_cast<int>(places_.size()) - 1;
  work_behind_.assign(places_.size() * (S_ + 1), kInfinity);
  seconds_behind_ = work_behind_;
  work_behind_[At(last, S_)] = seconds_behind_[At(last, S_)] = 0;
  some_behind_[last] = 1;
  stages_from_.assign(places_.size(), {});
  const double most_seconds = known_ / std::max(1, problem_.microbatches) * kCostSlack;
  for (int a = last - 1; a >= 0; --a) {
    const Ideal& from = ideals_.ideals[places_[a]];
    const int first_count = std::max(0, S_ - (n - from.held)), last_count = std::min(S_ - 1, from.held);
    costs_.StartFrom(places_[a]);
    int b = a + 1;
    for (; b <= last && seconds_[b] <= seconds_[a] + fastest_ * most_seconds; ++b) {
      if (!some_behind_[b] || !ideals_.Inside(from, ideals_.ideals[places_[b]])) continue;
      const StageCost cost = costs_.CostTo(places_[b]);
      bool useful = false;
      for (int s = first_count; s <= last_count; ++s) {
        if (work_behind_[At(b, s + 1)] == kInfinity) continue;
        const double seconds = StageSeconds(s, cost);
        if (seconds >= most_seconds) continue;
        useful = true;
        double& least = seconds_behind_[At(a, s)];
        least = std::min(least, seconds + seconds_behind_[At(b, s + 1)]);
        double& work = work_behind_[At(a, s)];
        work = std::min(work, seconds * speed_[rank_of_[s]] + work_behind_[At(b, s + 1)]);
      }
      if (useful) stages_from_[a].push_back(b);
      steps_ += 10;
    }
    steps_ += (b - a) / kPairsAStep;
    if (steps_ > search_.steps) return false;
    for (int s = first_count; s <= last_count; ++s) {
      if (LeastThrough(a, s) >= known_ * kBetter) work_behind_[At(a, s)] = kInfinity;
      some_behind_[a] |= work_behind_[At(a, s)] < kInfinity;
    }
  }
  return true;
}

bool DeviceSolver::FindLeast(int stages) {
  double work = work_behind_[At(grown_.place, stages)], sum = grown_.sum, most = grown_.most;
  for (const int rank : ranks_to_come_[stages]) {
    const double seconds = Seconds(rank, grown_devices_[rank]);
    most = std::max(most, seconds);
    work += seconds * speed_[rank];
    sum += seconds;
  }
  if (stages < S_) most = std::max(most, work / speed_to_come_[stages]);
  grown_.least = most;
  if (problem_.microbatches > 0)
    grown_.least = sum + seconds_behind_[At(grown_.place, stages)] + (problem_.microbatches - 1) * most;
  return grown_.least < known_ * kBetter;
}

bool DeviceSolver::NoMore(const Label& label, const Device* devices, const Label& other, const Device* others,
                          int stages) const {
  if (label.most > other.most * kCostSlack) return false;
  if (problem_.microbatches > 0 && label.sum > other.sum * kCostSlack) return false;
  for (const int rank : ranks_to_come_[stages]) {
    if (devices[rank].seconds > others[rank].seconds * kCostSlack) return false;
    if (memory_[rank] < kInfinity && !devices[rank].kept.WithinEachPartOf(others[rank].kept)) return false;
  }
  return true;
}

void DeviceSolver::Grow(int label, int stage, int place, const StageCost& cost) {
  const int rank = rank_of_[stage], stages = stage + 1;
  grown_ = labels_[label];
  grown_.place = place;
  grown_.from = label;
  std::copy_n(&devices_[static_cast<size_t>(label) * ranks_], ranks_, grown_devices_.begin());
  Device& device = grown_devices_[rank];
  device.seconds += cost.compute / speed_[rank] + cost.messages;
  if (memory_[rank] < kInfinity) {
    device.kept.Add(cost.bytes, rules_.copies[stage]);
    device.kept.Add(cost.remake, rules_.copies[stage]);
  }
  const std::vector<int>& to_come = ranks_to_come_[stages];
  if (std::find(to_come.begin(), to_come.end(), rank) == to_come.end()) {
    const double seconds = Seconds(rank, device);
    grown_.most = std::max(grown_.most, seconds);
    grown_.sum += seconds;
  }
  steps_ += 4;
  if (!FindLeast(stages)) return;

  std::vector<int>& others = labels_at_[At(place, stages)];
  const auto devices_of = [this](int other) { return &devices_[static_cast<size_t>(other) * ranks_]; };
  steps_ += static_cast<int64_t>(others.size());
  for (const int other : others) {
    if (NoMore(labels_[other], devices_of(other), grown_, grown_devices_.data(), stages)) return;
  }
  std::erase_if(others, [&](int other) {
    return NoMore(grown_, grown_devices_.data(), labels_[other], devices_of(other), stages);
  });
  if (static_cast<int>(others.size()) >= search_.labels) {
    all_kept_ = false;
    const auto worst = std::max_element(others.begin(), others.end(),
                                        [&](int a, int b) { return labels_[a].least < labels_[b].least; });
    if (labels_[*worst].least <= grown_.least) return;
    others.erase(worst);
  }
  steps_ += 10;
  others.push_back(static_cast<int>(labels_.size()));
  labels_.push_back(grown_);
  devices_.insert(devices_.end(), grown_devices_.begin(), grown_devices_.end());
  if (stages < S_) return;
  known_ = grown_.least;
  best_ = others.back();
}

std::vector<int> DeviceSolver::StagesOf(int label) const {
  std::vector<int> stage_of(blocks_.size(), 0);
  for (int s = S_ - 1; s > 0; --s) {
    label = labels_[label].from;
    const Ideal& front = ideals_.ideals[places_[labels_[label].place]];
    for (int block = 0; block < blocks_.size(); ++block) stage_of[block] += !ideals_.Has(front, block);
  }
  return stage_of;
}

DeviceCut DeviceSolver::Solve(double bound, double known) {
  known_ = known;
  if (!FindBehind()) return {std::nullopt, known, false};
  labels_ = {{0, -1, bound, 0, 0}};
  devices_.assign(ranks_, {});
  labels_at_.assign(places_.size() * (S_ + 1), {});
  labels_at_[0] = {0};
  const size_t most_labels = kMostBytes / (sizeof(Label) + ranks_ * sizeof(Device));
  bool finished = true;
  for (size_t a = 0; a + 1 < places_.size() && finished; ++a) {
    std::vector<int> counts;  // of stages in front, with labels
    for (int s = 0; s < S_; ++s) {
      if (!labels_at_[At(a, s)].empty()) counts.push_back(s);
    }
    if (counts.empty()) continue;
    costs_.StartFrom(places_[a]);
    for (const int b : stages_from_[a]) {
      steps_ += 10;
      const StageCost cost = costs_.CostTo(places_[b]);
      for (const int s : counts) {
        if (work_behind_[At(b, s + 1)] == kInfinity || StageSeconds(s, cost) >= known_) continue;
        for (const int label : labels_at_[At(a, s)]) Grow(label, s, b, cost);
      }
    }
    finished = steps_ <= search_.steps && labels_.size() < most_labels;
  }
  DeviceCut cut{std::nullopt, known_, finished && all_kept_};
  if (best_ >= 0) cut.stage_of = StagesOf(best_);
  return cut;
}

}  // namespace pipec
