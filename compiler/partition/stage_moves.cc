#include "compiler/partition/stage_moves.h"

#include <algorithm>
#include <cmath>

#include "compiler/partition/stage_rules.h"

namespace pipec {
namespace {

// The slowest device counts as the root of the sum of so high powers.
constexpr int kDoublings = 5;  // to the 32nd power
// A move may lead so many stages away.
constexpr int kFarthest = 2;
// What is kept up to date loses digits.
constexpr int kMovesBetweenSums = 64;

}  // namespace

StageMoves::StageMoves(const PartitionProblem& problem, const Blocks& blocks)
    : problem_(problem),
      blocks_(blocks),
      S_(problem.stages),
      children_(Children(blocks)),
      tensors_of_(blocks.size()),
      in_flight_(RulesOf(problem).in_flight) {
  for (int t = 0; t < static_cast<int>(blocks.tensors.size()); ++t) {
    tensors_of_[blocks.tensors[t].producer].push_back(t);
    for (int consumer : blocks.tensors[t].consumers) tensors_of_[consumer].push_back(t);
  }
  for (int s = 0; s < S_; ++s) rank_of_.push_back(RankOf(problem, s));
  for (int rank = 0; rank < Ranks(problem); ++rank) {
    speed_.push_back(SpeedOf(problem, rank));
    memory_.push_back(static_cast<double>(MemoryOf(problem, rank)));
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
    slowest = std::max(slowest, device.seconds);
    sum += device.seconds;
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
    devices_[rank].bytes +=
        BytesOf(blocks_.blocks[block].parameter_bytes, blocks_.blocks[block].activation_bytes, in_flight_[s]);
    for (const SharedUse& use : blocks_.shared[block]) {
      if (shared_held_[static_cast<size_t>(use.group) * S_ + s]++ == 0)
        devices_[rank].bytes += static_cast<double>(use.bytes);
    }
  }
  for (size_t t = 0; t < blocks_.tensors.size(); ++t) {
    for (int s = 0; s < S_; ++s) {
      const int held = tensor_held_[t * S_ + s];
      if (held > 0 && held < blocks_.tensors[t].blocks())
        devices_[rank_of_[s]].seconds += blocks_.tensors[t].seconds;
    }
  }
  Sum();
}

void StageMoves::Sum() {
  scale_ = powers_ = sum_ = 0;
  for (const Device& device : devices_) scale_ = std::max(scale_, device.seconds);
  if (scale_ == 0) scale_ = 1;
  for (const Device& device : devices_) {
    powers_ += Power(device.seconds);
    sum_ += device.seconds;
  }
}

std::pair<int, int> StageMoves::Range(int block) const {
  int first = std::max(0, stage_of_[block] - kFarthest),
      last = std::min(S_ - 1, stage_of_[block] + kFarthest);
  for (int parent : blocks_.parents[block]) first = std::max(first, stage_of_[parent]);
  for (int child : children_[block]) last = std::min(last, stage_of_[child]);
  return {first, last};
}

StageMoves::Change StageMoves::Cost(int block, int to) const {
  const int from = stage_of_[block];
  const Block& moved = blocks_.blocks[block];
  Change change;
  change.from_seconds = -moved.seconds / speed_[rank_of_[from]];
  change.to_seconds = moved.seconds / speed_[rank_of_[to]];
  for (int t : tensors_of_[block]) {
    const BlockTensor& tensor = blocks_.tensors[t];
    const int here = tensor_held_[static_cast<size_t>(t) * S_ + from];
    const int there = tensor_held_[static_cast<size_t>(t) * S_ + to];
    const int all = tensor.blocks();
    change.from_seconds += tensor.seconds * ((here > 1) - (here < all));
    change.to_seconds += tensor.seconds * ((there + 1 < all) - (there > 0));
  }
  change.from_bytes = -BytesOf(moved.parameter_bytes, moved.activation_bytes, in_flight_[from]);
  change.to_bytes = BytesOf(moved.parameter_bytes, moved.activation_bytes, in_flight_[to]);
  for (const SharedUse& use : blocks_.shared[block]) {
    const size_t group = static_cast<size_t>(use.group) * S_;
    if (shared_held_[group + from] == 1) change.from_bytes -= static_cast<double>(use.bytes);
    if (shared_held_[group + to] == 0) change.to_bytes += static_cast<double>(use.bytes);
  }
  return change;
}

bool StageMoves::Fits(int from_rank, int to_rank, const Change& change) const {
  if (from_rank == to_rank)
    return devices_[to_rank].bytes + change.from_bytes + change.to_bytes <= memory_[to_rank];
  return devices_[to_rank].bytes + change.to_bytes <= memory_[to_rank];
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
  devices_[rank_of_[from]].seconds += change.from_seconds;
  devices_[rank_of_[from]].bytes += change.from_bytes;
  devices_[rank_of_[to]].seconds += change.to_seconds;
  devices_[rank_of_[to]].bytes += change.to_bytes;
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
    if (!Fits(from_rank, to_rank, change)) continue;
    const double from_now = devices_[from_rank].seconds, to_now = devices_[to_rank].seconds;
    double powers = powers_ - Power(from_now), sum = sum_ + change.from_seconds + change.to_seconds;
    if (from_rank == to_rank) {
      powers += Power(from_now + change.from_seconds + change.to_seconds);
    } else {
      powers += Power(from_now + change.from_seconds) - Power(to_now) + Power(to_now + change.to_seconds);
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
