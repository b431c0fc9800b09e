#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/schedule/search/improve.h"
#include "compiler/schedule/search/list_scheduler.h"

namespace pipec {
namespace {

constexpr int kStarts = 4;             // how many of the grid are tuned
constexpr double kTemperature = 5e-4;  // of the makespan, falling to 0

// Numbers of our own making: the standard library's distributions differ between libraries.
class Random {
 public:
  int Below(int n) { return static_cast<int>(engine_() % n); }
  double Uniform() { return engine_() * 0x1p-32; }
  // Around 0, of variance 1: the sum of six uniform numbers.
  double Normal() {
    double sum = -3;
    for (int k = 0; k < 6; ++k) sum += Uniform();
    return sum * std::sqrt(2.0);
  }

 private:
  std::mt19937 engine_;
};

class Tuner {
 public:
  Tuner(const Tasks& tasks, BestOrder& best) : tasks_(tasks), scheduler_(tasks), best_(best) {
    for (const Tasks::Stage& stage : tasks.stages) unit_ += stage.seconds[kRowF] / tasks.stages.size();
  }

  void Run(int tries) {
    std::vector<Scored> grid = TryGrid();
    std::stable_sort(grid.begin(), grid.end(), [](const Scored& a, const Scored& b) { return a.better(b); });
    const int starts = std::min<int>(kStarts, grid.size());
    for (int k = 0; k < starts && !best_.IsBest(); ++k) Tune(grid[k], tries / starts);
  }

 private:
  struct Scored {
    Priorities priorities;
    double makespan = 0, sum_of_ends = 0;
    bool better(const Scored& other) const {
      return makespan != other.makespan ? makespan < other.makespan : sum_of_ends < other.sum_of_ends;
    }
  };

  Scored Try(Priorities priorities) {
    const double makespan = scheduler_.Run(priorities);
    best_.Offer(makespan, scheduler_.order());
    return {std::move(priorities), makespan, scheduler_.sum_of_ends()};
  }

  // How the bytes of a rank are shared between its stages, whether forwards or backwards go first, and how long
  // they are waited for rather than begin a W.
  std::vector<Scored> TryGrid() {
    const int S = static_cast<int>(tasks_.stages.size());
    std::vector<double> round_trip(S);  // without messages; what a stage keeps grows with it
    for (int s = S - 1; s >= 0; --s) {
      const Tasks::Stage& stage = tasks_.stages[s];
      round_trip[s] = stage.seconds[kRowF] + stage.seconds[kRowI] + (s + 1 < S ? round_trip[s + 1] : 0);
    }
    std::vector<Scored> grid;
    for (const double share : {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5, 2.0, 1e9}) {
      for (const double lead_of_i : {0.0, 1.0, -1e-9}) {
        for (const double wait : {0.0, 0.3, 0.6, 1.0}) {
          Priorities p;
          p.most_kept.resize(S);
          for (std::vector<double>& row : p.head_start) row.assign(S, 0);
          for (int s = 0; s < S; ++s) {
            const int rank = tasks_.stages[s].rank;
            double all = 0;
            for (const int other : tasks_.stages_of_rank[rank])
              all += round_trip[other] * tasks_.stages[other].bytes[kRowF];
            const double most =
                all > 0 ? share * tasks_.limit[rank] * round_trip[s] / all : tasks_.microbatches;
            p.most_kept[s] = static_cast<int>(std::clamp<double>(most, 1, tasks_.microbatches));
            p.head_start[kRowF][s] = wait * tasks_.stages[s].seconds[kRowW];
            p.head_start[kRowI][s] = p.head_start[kRowF][s] + lead_of_i * unit_;
          }
          grid.push_back(Try(std::move(p)));
          if (best_.IsBest()) return grid;
        }
      }
    }
    return grid;
  }

  void Tune(Scored now, int tries) {
    for (int k = 0; k < tries && !best_.IsBest(); ++k) {
      Priorities changed = now.priorities;
      for (int n = random_.Below(3); n >= 0; --n) Change(changed);
      const Scored next = Try(std::move(changed));
      const double temperature = kTemperature * now.makespan * (1 - static_cast<double>(k) / tries);
      if (!now.better(next) || random_.Uniform() < std::exp((now.makespan - next.makespan) / temperature))
        now = next;
    }
  }

  void Change(Priorities& p) {
    const int s = random_.Below(static_cast<int>(tasks_.stages.size()));
    switch (const int what = random_.Below(5)) {
      case 0: {
        int& most = p.most_kept[s];
        most = std::clamp(most + (random_.Below(2) ? 1 : -1), 1, tasks_.microbatches);
        return;
      }
      case 4:
        if (p.of_task.empty()) p.of_task.assign(tasks_.size(), 0);
        for (int n = random_.Below(4); n >= 0; --n)
          p.of_task[random_.Below(tasks_.size())] = static_cast<float>(random_.Normal() * unit_);
        return;
      default:
        p.head_start[what - 1][s] += 0.3 * random_.Normal() * unit_;
    }
  }

  const Tasks& tasks_;
  ListScheduler scheduler_;
  BestOrder& best_;
  Random random_;
  double unit_ = 0;  // mean seconds of an F
};

}  // namespace

void TunePriorities(const Tasks& tasks, int tries, BestOrder& best) { Tuner(tasks, best).Run(tries); }

}  // namespace pipec
