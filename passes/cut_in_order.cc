#include "passes/cut_in_order.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/cost/node_cost.h"
#include "compiler/partition/blocks.h"
#include "compiler/partition/stage_rules.h"
#include "passes/item_runs.h"
#include "passes/rank_loads.h"

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kBetter = 1 - 1e-9;

class Cutter {
 public:
  Cutter(const StageItems& items, const Cluster& cluster, const std::vector<int>& stage_of)
      : items_(items),
        runs_(items.problem),
        order_(runs_.size()),
        stages_(items.problem.stages),
        rules_(RulesOf(items.problem)) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return stage_of[runs_.begin[a]] < stage_of[runs_.begin[b]]; });
    for (size_t kind = 0; kind < items.times_on.size(); ++kind) {
      std::vector<double>& sums = before_.emplace_back(1, 0);
      for (const int run : order_) {
        double seconds = 0;
        for (int i = runs_.begin[run]; i < runs_.begin[run + 1]; ++i)
          seconds += items.SecondsOn(kind, i);
        sums.push_back(sums.back() + seconds);
      }
    }
    // In front of the first stage and behind the last nothing is sent.
    link_of_.assign(stages_ + 1, 0);
    for (int s = 1; s < stages_; ++s) {
      const Link link =
          cluster.LinkBetween(items.problem.rank_of_stage[s - 1], items.problem.rank_of_stage[s]);
      const auto it = std::find(links_.begin(), links_.end(), link);
      link_of_[s] = static_cast<int>(it - links_.begin());
      if (it == links_.end()) links_.push_back(link);
    }
    FindUses();
    blocks_ = Reorder(MakeBlocks(items.problem), order_);
  }

  // By item; empty if no cut is below `limit`.
  std::vector<int> Solve(double limit) {
    const int n = runs_.size();
    FindWindows(limit);
    std::vector<std::vector<double>> best(stages_ + 1);
    std::vector<std::vector<int>> from(stages_ + 1);
    for (int s = 0; s <= stages_; ++s) {
      best[s].assign(last_[s] - first_[s] + 1, limit);
      from[s].assign(best[s].size(), -1);
    }
    if (first_[0] > 0 || last_[stages_] < n) return {};
    best[0][0] = 0;
    std::vector<int> reached;  // stages that may begin at i
    for (int i = 0; i < n; ++i) {
      reached.clear();
      int end = i;
      for (int s = 0; s < stages_; ++s) {
        if (i < first_[s] || i > last_[s] || best[s][i - first_[s]] >= limit) continue;
        reached.push_back(s);
        end = std::max(end, last_[s + 1]);
      }
      if (reached.empty()) continue;
      std::vector<double> in(links_.size(), 0), out = in;  // by link, if it is the stage's: seconds
      Segment segment(blocks_, i);
      for (int j = i; j < end && !reached.empty(); ++j) {
        Grow(i, j, in, out);
        segment.Grow();
        // Stages that may not end farther on either go.
        std::erase_if(reached, [&](int s) {
          double slowest = Compute(s, i, j + 1);
          if (slowest >= limit || j + 1 > last_[s + 1]) return true;
          if (j + 1 < first_[s + 1]) return false;
          double& known = best[s + 1][j + 1 - first_[s + 1]];
          slowest += in[link_of_[s]] + out[link_of_[s + 1]];
          if (slowest >= known) return false;
          if (rules_.cap[s] != kNoCap) slowest += Remade(s, segment.cost());
          if (slowest == kInfinity) return true;
          slowest = std::max(slowest, best[s][i - first_[s]]);
          if (slowest >= known) return false;
          known = slowest;
          from[s + 1][j + 1 - first_[s + 1]] = i;
          return false;
        });
      }
    }
    if (best[stages_][n - first_[stages_]] >= limit) return {};
    std::vector<int> stage_of(items_.problem.items.size());
    for (int s = stages_, end = n; s > 0; --s) {
      const int begin = from[s][end - first_[s]];
      for (int place = begin; place < end; ++place) {
        const int run = order_[place];
        std::fill(stage_of.begin() + runs_.begin[run], stage_of.begin() + runs_.begin[run + 1], s - 1);
      }
      end = begin;
    }
    return stage_of;
  }

 private:
  // A tensor at one of its places.
  struct Use {
    int previous;  // its place before; -1: this is the first
    int first;     // of all its places
    bool last;
    std::vector<double> seconds;  // by link
  };

  void FindUses() {
    std::vector<int> place(runs_.size());
    for (int k = 0; k < runs_.size(); ++k) place[order_[k]] = k;
    uses_.resize(runs_.size());
    for (size_t t = 0; t < items_.problem.tensors.size(); ++t) {
      std::vector<double> seconds;
      for (const Link& link : links_) seconds.push_back(MessageSeconds(items_.tensor_bytes[t], link));
      std::vector<int> places = {place[runs_.run_of[items_.problem.tensors[t].producer]]};
      for (const int consumer : items_.problem.tensors[t].consumers)
        places.push_back(place[runs_.run_of[consumer]]);
      std::sort(places.begin(), places.end());
      places.erase(std::unique(places.begin(), places.end()), places.end());
      for (size_t k = 0; places.size() > 1 && k < places.size(); ++k) {
        uses_[places[k]].push_back({k > 0 ? places[k - 1] : -1, places[0], k + 1 == places.size(), seconds});
      }
    }
  }

  // What a stage that begins at i sends and receives, once it holds place j too.
  void Grow(int i, int j, std::vector<double>& in, std::vector<double>& out) const {
    for (const Use& use : uses_[j]) {
      const bool received = use.previous >= 0 && use.previous < i;  // for the first time
      const int sent =
          (use.previous < 0 ? 1 : 0) - (use.last && use.first >= i ? 1 : 0);  // not if all its uses are here
      for (size_t link = 0; link < links_.size(); ++link) {
        if (received) in[link] += use.seconds[link];
        out[link] += sent * use.seconds[link];
      }
    }
  }

  double Compute(int stage, int begin, int end) const {
    const std::vector<double>& sums = before_[items_.kind_of_rank[items_.problem.rank_of_stage[stage]]];
    return sums[end] - sums[begin];
  }

  // Seconds of what a stage makes again to fit; infinity if that is not enough.
  double Remade(int stage, const StageCost& cost) const {
    MemoryUse use;
    use.Add(cost.bytes, rules_.copies[stage]);
    if (blocks_.can_remake) use.Add(cost.remake, rules_.copies[stage]);
    return use.RemakeSeconds(static_cast<double>(rules_.cap[stage])) / rules_.speed[stage];
  }

  // By stage, and for the end: the places where it may begin if all stages are below the limit by compute alone.
  void FindWindows(double limit) {
    const int n = runs_.size();
    first_.assign(stages_ + 1, n);
    last_.assign(stages_ + 1, 0);
    for (int s = 0, i = 0; s < stages_; last_[++s] = i) {
      while (i < n - (stages_ - 1 - s) && Compute(s, last_[s], i + 1) < limit) ++i;
    }
    for (int s = stages_ - 1, i = n; s >= 0; first_[s--] = i) {
      while (i > s && Compute(s, i - 1, first_[s + 1]) < limit) --i;
    }
    for (int s = 0; s <= stages_; ++s) last_[s] = std::max(last_[s], first_[s]);
  }

  const StageItems& items_;
  const ItemRuns runs_;
  std::vector<int> order_;  // runs
  const int stages_;
  const StageRules rules_;
  Blocks blocks_;                            // in the order: the runs
  std::vector<std::vector<double>> before_;  // by kind of device and place: seconds of the runs before
  std::vector<Link> links_;                  // those between neighbours, each once
  std::vector<int> link_of_;                 // in front of each stage, and behind the last
  std::vector<std::vector<Use>> uses_;       // by place
  std::vector<int> first_, last_;
};

}  // namespace

void CutInOrder(const StageItems& items, const Cluster& cluster, const std::vector<int>& order,
                std::vector<int>& stage_of) {
  std::vector<int> ranks = items.problem.rank_of_stage;
  std::sort(ranks.begin(), ranks.end());
  if (ranks.size() < 2 || std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) return;
  const RankLoads loads(items, cluster);
  const double slowest = loads.Slowest(stage_of);
  std::vector<int> other = Cutter(items, cluster, order).Solve(slowest * kBetter);
  if (!other.empty() && loads.Slowest(other) < slowest) stage_of = std::move(other);
}

}  // namespace pipec
