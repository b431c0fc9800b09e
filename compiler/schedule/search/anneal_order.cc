#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/schedule/search/improve.h"

namespace pipec {
namespace {

constexpr double kHottest = 1e-4, kColdest = 5e-6;  // temperatures, of the makespan
constexpr int kFarthest = 6;                        // places

class Annealer {
 public:
  Annealer(const Tasks& tasks, absl::FunctionRef<double(const TaskOrder&)> seconds, BestOrder& best)
      : tasks_(tasks), seconds_(seconds), best_(best), order_(best.order) {}

  void Run(int tries) {
    double now = best_.makespan;
    for (int k = 0; k < tries && !best_.IsBest(); ++k) {
      const double temperature =
          now * kHottest * std::pow(kColdest / kHottest, static_cast<double>(k) / tries);
      const int rank = static_cast<int>(engine_() % order_.size());
      std::vector<int>& list = order_[rank];
      const int from = static_cast<int>(engine_() % list.size()), direction = engine_() % 2 ? 1 : -1;
      const int farthest = engine_() % 4 == 0 ? 1 + engine_() % kFarthest : 1;
      int to = from;
      for (int n = 0; n < farthest && MayPass(list, to, to + direction); ++n, to += direction)
        std::swap(list[to], list[to + direction]);
      if (to == from) continue;
      const double next = FitsMemory(list, rank, tasks_) ? seconds_(order_) : 2 * now;
      if (next <= now || engine_() * 0x1p-32 < std::exp((now - next) / temperature)) {
        now = next;
        best_.Offer(now, order_);
      } else {
        for (; to != from; to -= direction) std::swap(list[to], list[to - direction]);
      }
    }
  }

 private:
  // Whether the tasks at two places, the one at `at` going past the other, may change places: one row of a stage
  // keeps its order, and F, I, W of a microbatch theirs.
  bool MayPass(const std::vector<int>& list, int at, int other) const {
    if (other < 0 || other >= static_cast<int>(list.size())) return false;
    const int a = list[at], b = list[other];
    return tasks_.StageOf(a) != tasks_.StageOf(b) ||
           (tasks_.RowOf(a) != tasks_.RowOf(b) && tasks_.MicrobatchOf(a) != tasks_.MicrobatchOf(b));
  }

  const Tasks& tasks_;
  const absl::FunctionRef<double(const TaskOrder&)> seconds_;
  BestOrder& best_;
  TaskOrder order_;
  std::mt19937 engine_;
};

}  // namespace

void AnnealOrder(const Tasks& tasks, int tries, absl::FunctionRef<double(const TaskOrder&)> seconds,
                 BestOrder& best) {
  if (!best.order.empty()) Annealer(tasks, seconds, best).Run(tries);
}

}  // namespace pipec
