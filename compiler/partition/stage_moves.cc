#include "compiler/partition/stage_moves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/partition/stage_rules.h"

namespace pipec {
namespace {

// The slowest device counts as the root of the sum of so high powers.
constexpr int kDoublings = 5;  // to the 32nd power
// A move may lead so many stages away.
constexpr int kFarthest = 2;
// What is kept up to date loses digits.
constexpr int kMovesBetweenSums = 64;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

}  // namespace

StageMoves::StageMoves(const PartitionProblem& problem, const Blocks& blocks)
    : problem_(problem),
      blocks_(blocks),
      S_(problem.stages),
      children_(Children(blocks)),
      tensors_of_(blocks.size()),
      copies_(RulesOf(problem).copies) {
  for (int t = 0; t < static_cast<int>(blocks.tensors.size()); ++t) {
    tensors_of_[blocks.tensors[t].producer].push_back(t);
    for (int consumer : blocks.tensors[t].consumers) tensors_of_[consumer].push_back(t);
  }
  for (int s = 0; s < S_; ++s) rank_of_.push_back(RankOf(problem, s));
  for (int rank = 0; rank < Ranks(problem); ++rank) {
    speed_.push_back(SpeedOf(problem, rank));
    const int64_t memory = MemoryOf(problem, rank);
    memory_.push_back(memory == kNoCap ? kUnlimited : static_cast<double>(memory));
    limited_ |= memory != kNoCap;
  }
}

double StageMoves::Power(double seconds) const {
  double power = seconds / scale_;
  for (int k = 0; k < kDoublings; ++k) power *= power;
  return power;
}

double StageMoves::Energy(double powers, double sum) const {
  double root = powers;
  for (int k = 0; k < kDoublings; ++k) root = std::sqrt(root);
  // Messages that do not matter now may be in the way later.
  const double share = problem_.microbatches > 1 ? 1.0 / (problem_.microbatches - 1) : 0.01 / S_;
  return root + share * sum / scale_;
}

double StageMoves::StepTimeNow() const {
  double slowest = 0, sum = 0;
  for (const Device& device : devices_) {
    slowest = std::max(slowest, device.load);
    sum += device.load;
  }
  return problem_.microbatches == 0 ? slowest : sum + (problem_.microbatches - 1) * slowest;
}

void StageMoves::Start(const std::vector<int>& stage_of) {
  stage_of_ = stage_of;
  held_.assign(S_, 0);
  tensor_held_.assign(blocks_.tensors.size() * S_, 0);
  shared_held_.assign(static_cast<size_t>(blocks_.shared_groups) * S_, 0);
  devices_.assign(speed_.size(), {});
  for (int block = 0; block < blocks_.size(); ++block) {
    const int s = stage_of[block], rank = rank_of_[s];
    ++held_[s];
    for (int t : tensors_of_[block]) ++tensor_held_[static_cast<size_t>(t) * S_ + s];
    devices_[rank].seconds += blocks_.blocks[block].seconds / speed_[rank];
    devices_[rank].kept.Add(blocks_.blocks[block].bytes, copies_[s]);
    devices_[rank].kept.Add(blocks_.blocks[block].remake, copies_[s]);
    for (const SharedUse& use : blocks_.shared[block]) {
      if (shared_held_[static_cast<size_t>(use.group) * S_ + s]++ == 0)
        devices_[rank].kept.Add(use.bytes, copies_[s]);
    }
  }
  for (size_t t = 0; t < blocks_.tensors.size(); ++t) {
    for (int s = 0; s < S_; ++s) {
      const int held = tensor_held_[t * S_ + s];
      if (held > 0 && held < blocks_.tensors[t].blocks())
        devices_[rank_of_[s]].seconds += blocks_.tensors[t].seconds;
    }
  }
  for (size_t rank = 0; rank < devices_.size(); ++rank) FindLoad(rank, devices_[rank]);
  Sum();
}

void StageMoves::Sum() {
  scale_ = powers_ = sum_ = 0;
  for (const Device& device : devices_) scale_ = std::max(scale_, device.load);
  if (scale_ == 0) scale_ = 1;
  for (const Device& device : devices_) {
    powers_ += Power(device.load);
    sum_ += device.load;
  }
}

std::pair<int, int> StageMoves::Range(int block) const {
  int first = std::max(0, stage_of_[block] - kFarthest),
      last = std::min(S_ - 1, stage_of_[block] + kFarthest);
  for (int parent : blocks_.parents[block]) first = std::max(first, stage_of_[parent]);
  for (int child : children_[block]) last = std::min(last, stage_of_[child]);
  return {first, last};
}

void StageMoves::FindLoad(int rank, Device& device) const {
  device.load = device.seconds;
  if (memory_[rank] < kUnlimited) device.load += device.kept.RemakeSeconds(memory_[rank]) / speed_[rank];
}

StageMoves::Change StageMoves::Cost(int block, int to) const {
  const int from = stage_of_[block], from_rank = rank_of_[from], to_rank = rank_of_[to];
  const Block& moved = blocks_.blocks[block];
  Change change{devices_[from_rank], devices_[to_rank]};
  Device &left = change.from, &reached = from_rank == to_rank ? change.from : change.to;
  left.seconds -= moved.seconds / speed_[from_rank];
  reached.seconds += moved.seconds / speed_[to_rank];
  for (int t : tensors_of_[block]) {
    const BlockTensor& tensor = blocks_.tensors[t];
    const int here = tensor_held_[static_cast<size_t>(t) * S_ + from];
    const int there = tensor_held_[static_cast<size_t>(t) * S_ + to];
    const int all = tensor.blocks();
    left.seconds += tensor.seconds * ((here > 1) - (here < all));
    reached.seconds += tensor.seconds * ((there + 1 < all) - (there > 0));
  }
  if (limited_) {
    left.kept.Remove(moved.bytes, copies_[from]);
    left.kept.Remove(moved.remake, copies_[from]);
    reached.kept.Add(moved.bytes, copies_[to]);
    reached.kept.Add(moved.remake, copies_[to]);
    for (const SharedUse& use : blocks_.shared[block]) {
      const size_t group = static_cast<size_t>(use.group) * S_;
      if (shared_held_[group + from] == 1) left.kept.Remove(use.bytes, copies_[from]);
      if (shared_held_[group + to] == 0) reached.kept.Add(use.bytes, copies_[to]);
    }
  }
  FindLoad(from_rank, left);
  if (from_rank == to_rank) {
    change.to = left;
  } else {
    FindLoad(to_rank, reached);
  }
  return change;
}

void StageMoves::Move(int block, int to, const Change& change) {
  const int from = stage_of_[block];
  stage_of_[block] = to;
  --held_[from];
  ++held_[to];
  for (int t : tensors_of_[block]) {
    --tensor_held_[static_cast<size_t>(t) * S_ + from];
    ++tensor_held_[static_cast<size_t>(t) * S_ + to];
  }
  for (const SharedUse& use : blocks_.shared[block]) {
    --shared_held_[static_cast<size_t>(use.group) * S_ + from];
    ++shared_held_[static_cast<size_t>(use.group) * S_ + to];
  }
  devices_[rank_of_[from]] = change.from;
  devices_[rank_of_[to]] = change.to;
}

std::vector<int> StageMoves::Improve(const std::vector<int>& stage_of, int64_t tries, double heat,
                                     std::mt19937_64& random) {
  Start(stage_of);
  best_time_ = StepTimeNow();
  std::vector<std::pair<int, int>> since_best;  // block, the stage that it left
  double energy = Energy(powers_, sum_);
  int64_t moves = 0;
  for (int64_t k = 0; k < tries; ++k) {
    const uint64_t drawn = random();
    const int block = static_cast<int>((drawn >> 32) % blocks_.size());
    const int from = stage_of_[block];
    const auto [first, last] = Range(block);
    if (first == last || held_[from] == 1) continue;
    int to = first + static_cast<int>((drawn & 0xffff) % (last - first));
    if (to >= from) ++to;
    const Change change = Cost(block, to);
    const int from_rank = rank_of_[from], to_rank = rank_of_[to];
    if (change.from.load == kUnlimited || change.to.load == kUnlimited) continue;  // does not fit
    const double from_now = devices_[from_rank].load, to_now = devices_[to_rank].load;
    double powers = powers_ - Power(from_now) + Power(change.from.load), sum = sum_ - from_now + change.from.load;
    if (from_rank != to_rank) {
      powers += Power(change.to.load) - Power(to_now);
      sum += change.to.load - to_now;
    }
    const double after = Energy(powers, sum);
    // Threshold accepting: what is allowed falls steadily.
    const double allowed = heat * static_cast<double>(tries - k) / tries * ((drawn >> 16 & 0xffff) / 65536.0);
    if (after > energy + allowed) continue;
    since_best.emplace_back(block, from);
    Move(block, to, change);
    powers_ = powers;
    sum_ = sum;
    energy = after;
    if (++moves % kMovesBetweenSums == 0) {
      Sum();
      energy = Energy(powers_, sum_);
    }
    const double time = StepTimeNow();
    if (time < best_time_ * (1 - 1e-9)) {
      best_time_ = time;
      since_best.clear();
    }
  }
  for (auto it = since_best.rbegin(); it != since_best.rend(); ++it) stage_of_[it->first] = it->second;
  return stage_of_;
}

}  // namespace pipec
