#include <algorithm>
#include <array>

#include "compiler/schedule/search/improve.h"

namespace pipec {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Search {
 public:
  Search(const Tasks& tasks, int64_t steps, BestOrder& best)
      : tasks_(tasks), steps_left_(steps), best_(best), order_(tasks.ranks), after_(tasks.stages.size()) {
    // What has to follow a task of a microbatch on the longest path, by stage and row; W is followed by nothing.
    const int S = static_cast<int>(tasks.stages.size());
    for (int s = 0; s < S; ++s) Follow(s, kRowI);
    for (int s = S - 1; s >= 0; --s) Follow(s, kRowF);
  }

  bool Run() {
    State start;
    for (std::vector<int>& done : start.done) done.assign(tasks_.stages.size(), 0);
    start.kept.assign(tasks_.ranks, 0);
    start.now.assign(tasks_.ranks, 0);
    start.left.assign(tasks_.ranks, 0);
    for (const Tasks::Stage& stage : tasks_.stages) {
      for (const double seconds : stage.seconds) start.left[stage.rank] += seconds * tasks_.microbatches;
    }
    start.channel_free.assign(tasks_.ranks * tasks_.ranks, 0);
    start.arrival.assign(tasks_.arcs.size() * tasks_.microbatches, kNever);
    for (std::vector<bool>& banned : start.banned) banned.assign(tasks_.stages.size(), false);
    Visit(start);
    return steps_left_ > 0 || best_.IsBest();
  }

 private:
  struct State {
    std::vector<int> done[3];  // by row and stage
    std::vector<int64_t> kept;
    std::vector<double> now, left;  // by rank: when it is free, seconds of what it has not done
    std::vector<double> channel_free, arrival;
    std::vector<bool> banned[3];  // by row and stage: not what its rank does next
  };
  struct Choice {
    int stage, row;
    double start, end;
  };

  void Follow(int s, int row) {
    const Tasks::Stage& stage = tasks_.stages[s];
    double& after = after_[s][row];
    after = stage.seconds[row + 1] + after_[s][row + 1];
    for (const int a : stage.out[row]) {
      const Tasks::Arc& arc = tasks_.arcs[a];
      after =
          std::max(after, arc.seconds + tasks_.stages[arc.to_stage].seconds[row] + after_[arc.to_stage][row]);
    }
  }

  // What a rank could do next.
  void AddChoices(const State& state, int rank, std::vector<Choice>& choices) const {
    for (const int s : tasks_.stages_of_rank[rank]) {
      const Tasks::Stage& stage = tasks_.stages[s];
      for (const int row : {kRowF, kRowI, kRowW}) {
        const int m = state.done[row][s],
                  before = row == kRowF ? tasks_.microbatches : state.done[row - 1][s];
        if (m >= before || state.banned[row][s]) continue;
        if (stage.bytes[row] > 0 && state.kept[rank] + stage.bytes[row] > tasks_.limit[rank]) continue;
        double start = state.now[rank];
        if (row != kRowW) {
          for (const int arc : stage.in[row])
            start = std::max(start, state.arrival[tasks_.arcs[arc].arrivals + m]);
        }
        if (start < kNever) choices.push_back({s, row, start, start + stage.seconds[row]});
      }
    }
  }

  // Seconds that the whole takes at least if it goes on from here.
  double Bound(const State& state, const std::vector<Choice>& choices) const {
    double bound = 0;
    for (int r = 0; r < tasks_.ranks; ++r) bound = std::max(bound, state.now[r] + state.left[r]);
    for (const Choice& choice : choices) {
      // The microbatches behind it follow one another, as does what the last of them has in front of it.
      const int behind = tasks_.microbatches - 1 - state.done[choice.row][choice.stage];
      bound = std::max(bound, choice.end + behind * tasks_.stages[choice.stage].seconds[choice.row] +
                                  after_[choice.stage][choice.row]);
    }
    return bound;
  }

  void Visit(const State& state) {
    if (best_.IsBest() || --steps_left_ <= 0) return;
    std::vector<Choice> choices;
    for (int r = 0; r < tasks_.ranks; ++r) AddChoices(state, r, choices);
    if (choices.empty()) {
      if (std::all_of(state.left.begin(), state.left.end(), [](double left) { return left < 1e-12; }) &&
          IsComplete(state))
        best_.Offer(*std::max_element(state.now.begin(), state.now.end()), order_);
      return;
    }
    if (Bound(state, choices) >= best_.makespan * (1 - 1e-12)) return;
    const Choice first = *std::min_element(choices.begin(), choices.end(),
                                           [](const Choice& a, const Choice& b) { return a.end < b.end; });
    const int rank = tasks_.stages[first.stage].rank;
    // The rank's next task starts before `first` would end: else `first` could come before it and delay nothing
    // (but for what MayDelay says).
    std::vector<Choice> conflict;
    for (const Choice& choice : choices) {
      if (tasks_.stages[choice.stage].rank == rank && (choice.start < first.end || &choice == &first))
        conflict.push_back(choice);
    }
    if (conflict.empty()) conflict.push_back(first);
    std::stable_sort(conflict.begin(), conflict.end(),
                     [](const Choice& a, const Choice& b) { return a.start < b.start; });
    for (const Choice& choice : conflict) Do(state, choice);
    if (!MayDelay(first)) return;
    State without = state;
    without.banned[first.row][first.stage] = true;
    Visit(without);
  }

  // Whether a task that comes earlier can be in the way of others all the same: by what it keeps, or by its messages.
  bool MayDelay(const Choice& choice) const {
    const Tasks::Stage& stage = tasks_.stages[choice.stage];
    return stage.bytes[choice.row] > 0 ||
           (choice.row != kRowW && std::any_of(stage.out[choice.row].begin(), stage.out[choice.row].end(),
                                               [this](int arc) { return tasks_.arcs[arc].seconds > 0; }));
  }

  bool IsComplete(const State& state) const {
    return std::all_of(state.done[kRowW].begin(), state.done[kRowW].end(),
                       [this](int done) { return done == tasks_.microbatches; });
  }

  void Do(State state, const Choice& choice) {
    const Tasks::Stage& stage = tasks_.stages[choice.stage];
    const int m = state.done[choice.row][choice.stage]++;
    state.now[stage.rank] = choice.end;
    state.left[stage.rank] -= stage.seconds[choice.row];
    state.kept[stage.rank] += stage.bytes[choice.row];
    for (const int s : tasks_.stages_of_rank[stage.rank]) {
      for (std::vector<bool>& banned : state.banned) banned[s] = false;
    }
    for (const int a : choice.row == kRowW ? std::vector<int>() : stage.out[choice.row]) {
      const Tasks::Arc& arc = tasks_.arcs[a];
      double& arrival = state.arrival[arc.arrivals + m];
      arrival = choice.end;
      if (arc.channel < 0) continue;
      double& free = state.channel_free[arc.channel];
      arrival = free = std::max(arrival, free) + arc.seconds;
    }
    order_[stage.rank].push_back(tasks_.Index(choice.stage, choice.row, m));
    Visit(state);
    order_[stage.rank].pop_back();
  }

  const Tasks& tasks_;
  int64_t steps_left_;
  BestOrder& best_;
  TaskOrder order_;
  std::vector<std::array<double, 3>> after_;
};

}  // namespace

bool BranchAndBound(const Tasks& tasks, int64_t steps, BestOrder& best) {
  return Search(tasks, steps, best).Run();
}

}  // namespace pipec
