#include "compiler/schedule/search/bound.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

#include "compiler/schedule/search/tasks.h"

namespace pipec {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Longest paths over what a task needs and the microbatch order of each stage, by task.
struct Paths {
  std::vector<double> head;  // seconds before it can start
  std::vector<double> tail;  // seconds that follow its end
};

Paths LongestPaths(const Tasks& tasks) {
  const int S = static_cast<int>(tasks.stages.size()), M = tasks.microbatches;
  Paths paths{std::vector<double>(tasks.size(), 0), std::vector<double>(tasks.size(), 0)};
  const auto end = [&](int task) {
    return paths.head[task] + tasks.stages[tasks.StageOf(task)].seconds[tasks.RowOf(task)];
  };
  const auto with = [&](int task) {
    return paths.tail[task] + tasks.stages[tasks.StageOf(task)].seconds[tasks.RowOf(task)];
  };
  // One task: what comes before it in its row, at its stage, and over arcs.
  const auto head = [&](int s, int row, int m) {
    double& at = paths.head[tasks.Index(s, row, m)];
    if (m > 0) at = end(tasks.Index(s, row, m - 1));
    if (row != kRowF) at = std::max(at, end(tasks.Index(s, row - 1, m)));
    if (row == kRowW) return;
    for (const int a : tasks.stages[s].in[row])
      at = std::max(at, end(tasks.Index(tasks.arcs[a].from_stage, row, m)) + tasks.arcs[a].seconds);
  };
  const auto tail = [&](int s, int row, int m) {
    double& at = paths.tail[tasks.Index(s, row, m)];
    if (m + 1 < M) at = with(tasks.Index(s, row, m + 1));
    if (row == kRowW) return;
    at = std::max(at, with(tasks.Index(s, row + 1, m)));
    for (const int a : tasks.stages[s].out[row])
      at = std::max(at, tasks.arcs[a].seconds + with(tasks.Index(tasks.arcs[a].to_stage, row, m)));
  };
  for (int m = 0; m < M; ++m) {
    for (int s = 0; s < S; ++s) head(s, kRowF, m);
    for (int s = S - 1; s >= 0; --s) head(s, kRowI, m), head(s, kRowW, m);
  }
  for (int m = M - 1; m >= 0; --m) {
    for (int s = 0; s < S; ++s) tail(s, kRowW, m), tail(s, kRowI, m);
    for (int s = S - 1; s >= 0; --s) tail(s, kRowF, m);
  }
  return paths;
}

// Jackson's rule: of what can be done always the task with the longest tail, which any other interrupts.
double OneMachine(const Tasks& tasks, const Paths& paths, int rank) {
  std::vector<int> by_head;
  for (const int s : tasks.stages_of_rank[rank]) {
    for (int k = 0; k < 3 * tasks.microbatches; ++k) by_head.push_back(s * 3 * tasks.microbatches + k);
  }
  std::sort(by_head.begin(), by_head.end(), [&](int a, int b) { return paths.head[a] < paths.head[b]; });
  struct Piece {
    double tail, left;
    bool operator<(const Piece& other) const { return tail < other.tail; }
  };
  std::priority_queue<Piece> ready;
  double now = 0, bound = 0;
  size_t next = 0;
  while (next < by_head.size() || !ready.empty()) {
    if (ready.empty()) now = std::max(now, paths.head[by_head[next]]);
    for (; next < by_head.size() && paths.head[by_head[next]] <= now; ++next) {
      const int task = by_head[next];
      ready.push({paths.tail[task], tasks.stages[tasks.StageOf(task)].seconds[tasks.RowOf(task)]});
    }
    Piece piece = ready.top();
    ready.pop();
    const double until = next < by_head.size() ? paths.head[by_head[next]] : kNever;
    if (now + piece.left <= until) {
      now += piece.left;
      bound = std::max(bound, now + piece.tail);
    } else {
      piece.left -= until - now;
      now = until;
      ready.push(piece);
    }
  }
  return bound;
}

// Seconds from the start of a stage's F to the end of its I, of one microbatch that nothing is in front of.
double RoundTrip(const Tasks& tasks, int stage) {
  const int S = static_cast<int>(tasks.stages.size());
  std::vector<double> end[2] = {std::vector<double>(S, -kNever), std::vector<double>(S, -kNever)};
  const auto visit = [&](int s, int row) {
    double start = row == kRowI ? end[kRowF][s] : s == stage ? 0 : -kNever;
    for (const int a : tasks.stages[s].in[row])
      start = std::max(start, end[row][tasks.arcs[a].from_stage] + tasks.arcs[a].seconds);
    end[row][s] = start + tasks.stages[s].seconds[row];
  };
  for (int s = stage; s < S; ++s) visit(s, kRowF);
  for (int s = S - 1; s >= stage; --s) visit(s, kRowI);
  return end[kRowI][stage];
}

// Of a rank, by byte-seconds.
double MemoryBound(const Tasks& tasks, const Paths& paths, int rank) {
  const int M = tasks.microbatches;
  double needed = 0, first = kNever, f = kNever, w = kNever;
  int64_t largest = 0, unit = 0;  // of a microbatch; of all that is ever kept
  for (const int s : tasks.stages_of_rank[rank]) {
    const Tasks::Stage& stage = tasks.stages[s];
    const int64_t until_i = stage.bytes[kRowF], until_w = until_i + stage.bytes[kRowI];
    needed += M * (until_i * RoundTrip(tasks, s) + until_w * stage.seconds[kRowW]);
    first = std::min(first, paths.head[tasks.Index(s, kRowF, 0)]);
    f = std::min(f, stage.seconds[kRowF]);
    w = std::min(w, stage.seconds[kRowW]);
    largest = std::max({largest, until_i, until_w});
    for (const int64_t bytes : stage.bytes) unit = std::gcd(unit, bytes);
  }
  if (unit == 0) return 0;
  const int64_t usable = tasks.limit[rank] / unit * unit;
  if (usable < largest) return kNever;
  // Until k F have ended no more than k microbatches are kept, and likewise before the last W: some memory is idle.
  const double most = std::min<double>(usable / largest, M * tasks.stages_of_rank[rank].size());
  const double idle = largest * (f + w) * most * (most - 1) / 2;
  return first + (needed + idle) / usable;
}

}  // namespace

double MakespanBound(const ScheduleProblem& problem) {
  const Tasks tasks(problem);
  const Paths paths = LongestPaths(tasks);
  double bound = 0;
  for (int r = 0; r < tasks.ranks; ++r)
    bound = std::max({bound, OneMachine(tasks, paths, r), MemoryBound(tasks, paths, r)});
  return bound;
}

}  // namespace pipec
