#include "compiler/schedule/search/list_scheduler.h"

#include <algorithm>
#include <limits>

namespace pipec {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

ListScheduler::ListScheduler(const Tasks& tasks) : tasks_(tasks), order_(tasks.ranks), choice_(tasks.ranks) {}

double ListScheduler::Run(const Priorities& priorities) {
  for (std::vector<int>& done : done_) done.assign(tasks_.stages.size(), 0);
  kept_.assign(tasks_.ranks, 0);
  now_.assign(tasks_.ranks, 0);
  channel_free_.assign(tasks_.ranks * tasks_.ranks, 0);
  arrival_.assign(tasks_.arcs.size() * tasks_.microbatches, kNever);
  is_old_.assign(tasks_.ranks, true);
  for (std::vector<int>& list : order_) list.clear();
  for (int left = tasks_.size(); left > 0; --left) {
    int first = -1;
    for (int r = 0; r < tasks_.ranks; ++r) {
      if (is_old_[r]) choice_[r] = Choose(r, priorities);
      is_old_[r] = false;
      if (choice_[r].stage >= 0 && (first < 0 || choice_[r].start < choice_[first].start)) first = r;
    }
    if (first < 0) return kNever;
    Do(first, choice_[first]);
  }
  double makespan = sum_of_ends_ = 0;
  for (const double end : now_) {
    makespan = std::max(makespan, end);
    sum_of_ends_ += end;
  }
  return makespan;
}

// When all that a task needs has arrived, not before `from`; infinity if something has not been sent.
double ListScheduler::Arrival(const Tasks::Stage& stage, int row, int microbatch, double from) const {
  for (const int arc : stage.in[row]) from = std::max(from, arrival_[tasks_.arcs[arc].arrivals + microbatch]);
  return from;
}

ListScheduler::Choice ListScheduler::Choose(int rank, const Priorities& priorities) const {
  Choice best;
  const auto consider = [&](double start, int s, int row) {
    const int64_t bytes = tasks_.stages[s].bytes[row];
    if (start == kNever || (bytes > 0 && kept_[rank] + bytes > tasks_.limit[rank])) return;
    double key = start - priorities.head_start[row][s];
    if (!priorities.of_task.empty()) key -= priorities.of_task[tasks_.Index(s, row, done_[row][s])];
    // Of equals the later stage: what it does is let go sooner.
    if (best.stage < 0 || key <= best.key) best = {start, key, s, row};
  };
  // W first and F last: of equals F, then I are taken.
  for (const int s : tasks_.stages_of_rank[rank]) {
    if (done_[kRowW][s] < done_[kRowI][s]) consider(now_[rank], s, kRowW);
  }
  for (const int s : tasks_.stages_of_rank[rank]) {
    if (const int m = done_[kRowI][s]; m < done_[kRowF][s])
      consider(Arrival(tasks_.stages[s], kRowI, m, now_[rank]), s, kRowI);
  }
  for (const int s : tasks_.stages_of_rank[rank]) {
    const int m = done_[kRowF][s];
    if (m < tasks_.microbatches && m - done_[kRowW][s] < priorities.most_kept[s])
      consider(Arrival(tasks_.stages[s], kRowF, m, now_[rank]), s, kRowF);
  }
  return best;
}

void ListScheduler::Do(int rank, const Choice& choice) {
  const Tasks::Stage& stage = tasks_.stages[choice.stage];
  const int m = done_[choice.row][choice.stage]++;
  order_[rank].push_back(tasks_.Index(choice.stage, choice.row, m));
  const double end = now_[rank] = choice.start + stage.seconds[choice.row];
  kept_[rank] += stage.bytes[choice.row];
  is_old_[rank] = true;
  if (choice.row == kRowW) return;
  for (const int a : stage.out[choice.row]) {
    const Tasks::Arc& arc = tasks_.arcs[a];
    double& arrival = arrival_[arc.arrivals + m];
    arrival = end;
    is_old_[arc.to_rank] = true;
    if (arc.channel < 0) continue;
    double& free = channel_free_[arc.channel];
    arrival = free = std::max(end, free) + arc.seconds;
  }
}

}  // namespace pipec
