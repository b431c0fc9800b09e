// How the messages over a boundary are bounded. A block whose ancestors (and itself) work longer than b L
// cannot lie in front of boundary b; one whose descendants work longer than (S - b) L cannot lie behind it.
// Whatever the order, some tensor on each path from the second kind to the first crosses the boundary: at
// least the cheapest of the path, so the best of all paths is the one whose cheapest tensor is dearest. A
// message that crosses several boundaries is sent and received once, so a tensor counts at each boundary only
// the part of its time that is left when it is divided by the most boundaries it can cross: whole stages must
// lie between two of its blocks, made of blocks that are neither ancestors of the one nor descendants of the
// other, and none works less than compute - (S - 1) L. Boundaries are taken d apart, and the best d is kept.
// b L stands for what the devices of the stages in front of boundary b can do within L, and so on.
#include "compiler/partition/lower_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/partition/ancestors.h"
#include "compiler/partition/crossing_tensors.h"
#include "compiler/partition/heavy_stage.h"
#include "compiler/partition/stage_rules.h"

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Bound {
 public:
  Bound(const PartitionProblem& problem, const Blocks& blocks)
      : blocks_(blocks),
        n_(blocks.size()),
        S_(problem.stages),
        one_stage_a_device_(OneStageADevice(problem)),
        crossing_(blocks),
        boundaries_(S_),
        width_(n_, 0) {
    MeasureDevices(problem);
    std::vector<std::vector<int>> children_mirrored(n_);
    std::vector<double> seconds(n_), mirrored(n_);
    for (int i = 0; i < n_; ++i) {
      mirrored[n_ - 1 - i] = seconds[i] = blocks.blocks[i].seconds;
      for (int parent : blocks.parents[i]) children_mirrored[n_ - 1 - parent].push_back(n_ - 1 - i);
    }
    Ancestry before = SumAncestors(blocks.parents, seconds),
             after = SumAncestors(children_mirrored, mirrored);
    std::reverse(after.seconds.begin(), after.seconds.end());
    std::reverse(after.blocks.begin(), after.blocks.end());
    before_ = before.seconds;
    after_ = after.seconds;
    for (int i = 0; i < n_; ++i) {
      most_behind_.push_back(n_ - before.blocks[i]);
      most_before_.push_back(n_ - after.blocks[i]);
    }
    by_producer_.resize(n_);
    for (int t = 0; t < static_cast<int>(blocks.tensors.size()); ++t) {
      const BlockTensor& tensor = blocks.tensors[t];
      TensorFacts facts;
      int blocks_before = n_, blocks_after = n_;
      const auto look = [&](int block) {
        facts.before = std::min(facts.before, before_[block]);
        facts.after = std::min(facts.after, after_[block]);
        blocks_before = std::min(blocks_before, before.blocks[block]);
        blocks_after = std::min(blocks_after, after.blocks[block]);
      };
      look(tensor.producer);
      for (int consumer : tensor.consumers) look(consumer);
      facts.free_blocks = std::max(0, n_ - blocks_before - blocks_after);
      facts.free_seconds = blocks.total_seconds - facts.before - facts.after;
      tensors_.push_back(facts);
      by_producer_[tensor.producer].push_back(t);
    }
  }

  double fastest() const { return fastest_; }

  double Solve() {
    double low = blocks_.total_seconds / all_speed_;
    for (const Block& block : blocks_.blocks) low = std::max(low, block.seconds / fastest_);
    if (S_ == 1 || low == 0 || !RuledOut(low)) return low;
    double high = low;
    do high *= 2;
    while (RuledOut(high));
    for (int round = 0; round < 24; ++round) {
      const double middle = low + (high - low) / 2;
      (RuledOut(middle) ? low : high) = middle;
    }
    return low;
  }

 private:
  void MeasureDevices(const PartitionProblem& problem) {
    const int ranks = Ranks(problem);
    front_speed_.assign(S_ + 1, 0);
    behind_speed_.assign(S_ + 1, 0);
    std::vector<char> seen(ranks, 0);
    for (int s = 0; s < S_; ++s) {
      const int rank = RankOf(problem, s);
      const double speed = SpeedOf(problem, rank);
      front_speed_[s + 1] = front_speed_[s] + (seen[rank] ? 0 : speed);
      seen[rank] = 1;
      slowest_ = std::min(slowest_, speed);
      fastest_ = std::max(fastest_, speed);
    }
    all_speed_ = front_speed_[S_];
    std::fill(seen.begin(), seen.end(), 0);
    for (int s = S_ - 1; s >= 0; --s) {
      const int rank = RankOf(problem, s);
      behind_speed_[s] = behind_speed_[s + 1] + (seen[rank] ? 0 : SpeedOf(problem, rank));
      seen[rank] = 1;
    }
  }

  // The first boundary in front of which so many seconds of blocks can lie; S + 1 if there is none.
  int FirstBoundary(double seconds, double limit) const {
    return std::partition_point(front_speed_.begin(), front_speed_.end(),
                                [&](double speed) { return speed * limit * (1 + kSlack) < seconds; }) -
           front_speed_.begin();
  }
  // The last boundary behind which so many seconds of blocks can lie; -1 if there is none.
  int LastBoundary(double seconds, double limit) const {
    return std::partition_point(behind_speed_.begin(), behind_speed_.end(),
                                [&](double speed) { return speed * limit * (1 + kSlack) >= seconds; }) -
           behind_speed_.begin() - 1;
  }

  bool RuledOut(double limit) {
    // Which boundaries each tensor may cross, and how many at once; rounding must not make either too small.
    const double least_stage =
        one_stage_a_device_ ? blocks_.total_seconds - (all_speed_ - slowest_) * limit : 0;
    for (TensorFacts& facts : tensors_) {
      facts.first = std::max(1, FirstBoundary(facts.before, limit));
      facts.last = std::min(S_ - 1, LastBoundary(facts.after, limit));
      double stages_between = std::min(facts.free_blocks, S_ - 2);
      if (least_stage > kSlack * limit) {
        stages_between = std::min(stages_between, facts.free_seconds / least_stage + kSlack);
      }
      facts.most_crossed = 1 + std::max(0, static_cast<int>(stages_between));
    }
    if (!FindSides(limit)) return true;
    const double room = (all_speed_ * limit - blocks_.total_seconds) / 2 / slowest_ * (1 + kSlack);
    for (int apart = 1; apart < S_; apart += std::max(1, apart / 2)) {
      double messages = 0;
      for (int b = apart; b < S_; b += apart) {
        messages += CrossingSeconds(b, apart);
        if (messages > room) return true;
      }
    }
    return false;
  }

  // On which side of each boundary the blocks lie, where that is certain. Returns false if some block can lie
  // on neither.
  bool FindSides(double limit) {
    front_from_.resize(n_);
    behind_to_.resize(n_);
    for (int i = 0; i < n_; ++i) {
      front_from_[i] = std::min(LastBoundary(after_[i], limit), most_before_[i]) + 1;
      behind_to_[i] = std::max(FirstBoundary(before_[i], limit), S_ - most_behind_[i]) - 1;
      if (std::max(front_from_[i], 1) <= std::min(behind_to_[i], S_ - 1)) return false;
    }
    for (Boundary& boundary : boundaries_) boundary = {n_, 0, {}};
    for (int i = 0, b = 1; i < n_; ++i) {
      for (; b < std::min(front_from_[i], S_); ++b) boundaries_[b].begin = i;
    }
    for (int i = n_ - 1, b = S_ - 1; i >= 0; --i) {
      for (; b > std::max(behind_to_[i], 0); --b) boundaries_[b].end = i + 1;
    }
    for (int b = 1; b < S_; ++b) {
      crossing_.MoveTo(boundaries_[b].begin);
      boundaries_[b].crossing.assign(crossing_.tensors().begin(), crossing_.tensors().end());
    }
    return true;
  }

  // At least so many seconds of messages are boundary b's share, among the multiples of `apart`.
  double CrossingSeconds(int b, int apart) {
    const Boundary& boundary = boundaries_[b];
    // The dearest of the cheapest tensors on the paths from a block in front of the boundary, and the dearest
    // of those to a block behind it.
    std::fill(width_.begin() + boundary.begin, width_.begin() + boundary.end, 0);
    double best = 0;
    const auto follow = [&](int t, double width) {
      width = std::min(width, TensorWidth(t, b, apart));
      for (int consumer : blocks_.tensors[t].consumers) {
        if (consumer < boundary.begin) continue;
        double& end = consumer < boundary.end ? width_[consumer] : best;
        end = std::max(end, width);
      }
    };
    for (int t : boundary.crossing) follow(t, kInfinity);
    for (int i = boundary.begin; i < boundary.end; ++i) {
      if (front_from_[i] <= b) width_[i] = kInfinity;
      if (behind_to_[i] >= b) {
        best = std::max(best, width_[i]);
      } else if (width_[i] > 0) {
        for (int t : by_producer_[i]) follow(t, width_[i]);
      }
    }
    return best;
  }

  double TensorWidth(int t, int b, int apart) const {
    const TensorFacts& facts = tensors_[t];
    if (b < facts.first || b > facts.last) return kInfinity;  // cannot be the one that crosses here
    const int in_range = facts.last / apart - (facts.first - 1) / apart;
    const int at_once = (facts.most_crossed + apart - 1) / apart;
    return blocks_.tensors[t].seconds / std::min(in_range, at_once);
  }

  struct TensorFacts {
    double before = kInfinity, after = kInfinity;  // the least before_ and after_ of its blocks
    // Blocks that can lie between two of its blocks, and their seconds, at most.
    int free_blocks = 0;
    double free_seconds = 0;
    // For one limit: boundaries that it may cross, and how many of them at once.
    int first = 0, last = 0, most_crossed = 1;
  };

  // For one limit. Blocks in front of `begin` lie in front of the boundary, those from `end` on behind it.
  struct Boundary {
    int begin = 0, end = 0;
    std::vector<int> crossing;  // tensors that cross `begin`
  };

  static constexpr double kSlack = 1e-9;

  const Blocks& blocks_;
  const int n_, S_;
  const bool one_stage_a_device_;
  double slowest_ = kInfinity, fastest_ = 0, all_speed_ = 0;
  // By boundary: the devices of the stages in front of it, of those behind.
  std::vector<double> front_speed_, behind_speed_;
  std::vector<double> before_, after_;  // seconds of a block with all its ancestors, descendants
  std::vector<int> most_before_,
      most_behind_;  // blocks that can lie before a boundary that this one lies behind, ...
  std::vector<TensorFacts> tensors_;
  std::vector<std::vector<int>> by_producer_;
  CrossingTensors crossing_;
  // For one limit: the first boundary that a block lies in front of, the last that it lies behind.
  std::vector<int> front_from_, behind_to_;
  std::vector<Boundary> boundaries_;
  std::vector<double> width_;
};

}  // namespace

double PartitionLowerBound(const PartitionProblem& problem, const Blocks& blocks) {
  Bound bound(problem, blocks);
  return HeavyStageBound(blocks, bound.fastest(), bound.Solve());
}

}  // namespace pipec
