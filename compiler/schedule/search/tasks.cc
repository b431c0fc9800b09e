#include "compiler/schedule/search/tasks.h"

#include <algorithm>
#include <limits>

namespace pipec {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

int RowOfKind(ActionKind kind) {
  return kind == ActionKind::kF ? kRowF : kind == ActionKind::kW ? kRowW : kRowI;
}

}  // namespace

Tasks::Tasks(const ScheduleProblem& problem)
    : ranks(problem.shape.ranks),
      microbatches(problem.shape.microbatches),
      stages(problem.shape.stages()),
      stages_of_rank(problem.shape.ranks),
      limit(problem.limit) {
  for (int s = 0; s < problem.shape.stages(); ++s) {
    const StageTimes& times = problem.times[s];
    const KeptBytes& kept = problem.memory[s];
    stages[s] = {problem.rank_of_stage[s],
                 {times.f, times.i, times.w},
                 {kept.until_input + kept.until_weight, kept.between - kept.until_input,
                  -kept.until_weight - kept.between},
                 {},
                 {}};
    stages_of_rank[stages[s].rank].push_back(s);
  }
  for (const StageLink& link : problem.links) {
    const int from = stages[link.from_stage].rank, to = stages[link.to_stage].rank;
    const int row = link.from_stage < link.to_stage ? kRowF : kRowI;
    const int arc = static_cast<int>(arcs.size());
    stages[link.from_stage].out[row].push_back(arc);
    stages[link.to_stage].in[row].push_back(arc);
    arcs.push_back({link.from_stage, link.to_stage, to, from == to ? -1 : from * ranks + to,
                    from == to ? 0 : link.seconds, arc * microbatches});
  }
}

TaskOrder OrderOf(const Schedule& schedule, const Tasks& tasks) {
  TaskOrder order(tasks.ranks);
  for (int r = 0; r < tasks.ranks; ++r) {
    for (const Action& action : schedule.ranks[r]) {
      order[r].push_back(tasks.Index(action.stage, RowOfKind(action.kind), action.microbatch));
      if (action.kind == ActionKind::kB)
        order[r].push_back(tasks.Index(action.stage, kRowW, action.microbatch));
    }
  }
  return order;
}

Schedule ScheduleOf(const TaskOrder& order, const Tasks& tasks, const ScheduleProblem& problem) {
  constexpr ActionKind kKinds[] = {ActionKind::kF, ActionKind::kI, ActionKind::kW};
  Schedule schedule{"auto", problem.shape, problem.rank_of_stage,
                    std::vector<std::vector<Action>>(tasks.ranks)};
  for (int r = 0; r < tasks.ranks; ++r) {
    for (const int task : order[r])
      schedule.ranks[r].push_back({kKinds[tasks.RowOf(task)], tasks.StageOf(task), tasks.MicrobatchOf(task)});
  }
  return schedule;
}

bool FitsMemory(const std::vector<int>& list, int rank, const Tasks& tasks) {
  int64_t kept = 0;
  for (const int task : list) {
    kept += tasks.stages[tasks.StageOf(task)].bytes[tasks.RowOf(task)];
    if (kept > tasks.limit[rank]) return false;
  }
  return true;
}

bool FitsMemory(const TaskOrder& order, const Tasks& tasks) {
  for (int r = 0; r < tasks.ranks; ++r) {
    if (!FitsMemory(order[r], r, tasks)) return false;
  }
  return true;
}

OrderTimer::OrderTimer(const Tasks& tasks)
    : tasks_(tasks),
      arrival_(tasks.arcs.size() * tasks.microbatches),
      channel_free_(tasks.ranks * tasks.ranks),
      first_(tasks.ranks),
      now_(tasks.ranks),
      next_(tasks.ranks) {}

bool OrderTimer::Run(const TaskOrder& order) {
  std::fill(arrival_.begin(), arrival_.end(), kNever);
  std::fill(channel_free_.begin(), channel_free_.end(), 0);
  std::fill(now_.begin(), now_.end(), 0);
  std::fill(next_.begin(), next_.end(), 0);
  bool goes_on = true;
  while (goes_on) {
    goes_on = false;
    for (int r = 0; r < tasks_.ranks; ++r) {
      for (; next_[r] < order[r].size(); ++next_[r], goes_on = true) {
        const int task = order[r][next_[r]], row = tasks_.RowOf(task), m = tasks_.MicrobatchOf(task);
        const Tasks::Stage& stage = tasks_.stages[tasks_.StageOf(task)];
        double start = now_[r];
        if (row != kRowW) {
          for (const int arc : stage.in[row])
            start = std::max(start, arrival_[tasks_.arcs[arc].arrivals + m]);
          if (start == kNever) break;
        }
        if (next_[r] == 0) first_[r] = start;
        now_[r] = start + stage.seconds[row];
        if (row == kRowW) continue;
        // All messages of a channel are made by one rank, in the order of its list.
        for (const int a : stage.out[row]) {
          const Tasks::Arc& arc = tasks_.arcs[a];
          double& arrival = arrival_[arc.arrivals + m];
          arrival = now_[r];
          if (arc.channel < 0) continue;
          double& free = channel_free_[arc.channel];
          arrival = free = std::max(arrival, free) + arc.seconds;
        }
      }
    }
  }
  for (int r = 0; r < tasks_.ranks; ++r) {
    if (next_[r] < order[r].size()) return false;
  }
  return true;
}

double OrderTimer::Makespan(const TaskOrder& order) {
  return Run(order) ? *std::max_element(now_.begin(), now_.end()) : kNever;
}

double OrderTimer::LongestSpan(const TaskOrder& order, absl::Span<const double> after) {
  if (!Run(order)) return kNever;
  double longest = 0;
  for (int r = 0; r < tasks_.ranks; ++r) longest = std::max(longest, now_[r] - first_[r] + after[r]);
  return longest;
}

}  // namespace pipec
