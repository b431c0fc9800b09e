#include "passes/move_for_step.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "passes/item_runs.h"

namespace pipec {
namespace {

constexpr double kBetter = 1 - 1e-9;
constexpr int kShifts[] = {1, -1, 2, -2, 4, -4, 8, -8, 16, -16};  // runs
constexpr int kShiftsOfTwo[] = {1, -1, 2, -2};

class Boundaries {
 public:
  Boundaries(const PartitionProblem& problem, const std::vector<int>& stage_of)
      : runs_(problem), order_(runs_.size()), begin_(problem.stages + 1, runs_.size()), stage_of_(stage_of) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) { return StageOf(a) < StageOf(b); });
    for (int k = runs_.size() - 1; k >= 0; --k) begin_[StageOf(order_[k])] = k;
  }

  // Moves where stages [first, last] begin; false, and nothing is done, if that empties one.
  bool Shift(int first, int last, int by) {
    if (begin_[first] + by <= begin_[first - 1] || begin_[last] + by >= begin_[last + 1]) return false;
    for (int s = first; s <= last; ++s) {
      const int before = std::exchange(begin_[s], begin_[s] + by);
      for (int k = std::min(before, begin_[s]); k < std::max(before, begin_[s]); ++k) dirty_.push_back(k);
    }
    for (const int k : dirty_) {
      const int stage =
          static_cast<int>(std::upper_bound(begin_.begin(), begin_.end(), k) - begin_.begin()) - 1;
      std::fill(stage_of_.begin() + runs_.begin[order_[k]], stage_of_.begin() + runs_.begin[order_[k] + 1],
                stage);
    }
    dirty_.clear();
    return true;
  }

  int stages() const { return static_cast<int>(begin_.size()) - 1; }
  const std::vector<int>& stage_of() const { return stage_of_; }

 private:
  int StageOf(int run) const { return stage_of_[runs_.begin[run]]; }

  const ItemRuns runs_;
  std::vector<int> order_, begin_;  // runs by place; by stage its first place, and the end
  std::vector<int> stage_of_;       // by item
  std::vector<int> dirty_;          // places
};

// Tries one move after the other.
class Mover {
 public:
  Mover(const PartitionProblem& problem, double now,
        absl::FunctionRef<double(const std::vector<int>&, double)> seconds, absl::FunctionRef<bool()> more,
        std::vector<int>& stage_of)
      : cut_(problem, stage_of), now_(now), seconds_(seconds), more_(more), stage_of_(stage_of) {}

  double Run() {
    while (ShiftNeighbours() || ShiftTwo()) {
    }
    return now_;
  }

 private:
  // Takes the cut as it is now if it is faster.
  bool Take() {
    const double then = seconds_(cut_.stage_of(), now_ * kBetter);
    if (!(then < now_ * kBetter)) return false;
    now_ = then;
    stage_of_ = cut_.stage_of();
    return true;
  }

  bool ShiftNeighbours() {
    bool better = false;
    for (int together = 0; together < cut_.stages() - 1; ++together) {
      for (int first = 1; first + together < cut_.stages(); ++first) {
        for (const int by : kShifts) {
          while (more_() && cut_.Shift(first, first + together, by)) {
            if (!Take()) {
              cut_.Shift(first, first + together, -by);
              break;
            }
            better = true;
          }
        }
      }
    }
    return better;
  }

  bool ShiftTwo() {
    for (int first = 1; first < cut_.stages(); ++first) {
      for (int second = first + 1; second < cut_.stages(); ++second) {
        for (const int by : kShiftsOfTwo) {
          if (!more_() || !cut_.Shift(first, first, by)) continue;
          for (const int by_second : kShiftsOfTwo) {
            if (!more_() || !cut_.Shift(second, second, by_second)) continue;
            if (Take()) return true;
            cut_.Shift(second, second, -by_second);
          }
          cut_.Shift(first, first, -by);
        }
      }
    }
    return false;
  }

  Boundaries cut_;
  double now_;
  const absl::FunctionRef<double(const std::vector<int>&, double)> seconds_;
  const absl::FunctionRef<bool()> more_;
  std::vector<int>& stage_of_;
};

}  // namespace

double MoveForStep(const PartitionProblem& problem, double now,
                   absl::FunctionRef<double(const std::vector<int>&, double)> seconds,
                   absl::FunctionRef<bool()> more, std::vector<int>& stage_of) {
  return Mover(problem, now, seconds, more, stage_of).Run();
}

}  // namespace pipec
