#include "compiler/schedule/search/search.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/search/bound.h"
#include "compiler/schedule/search/improve.h"
#include "compiler/schedule/search/tasks.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Effort, in tasks placed: some 50 ns each.
constexpr int64_t kTuning = 4'000'000, kAnnealing = 4'000'000;
// What is small: then all orders are looked at first, as long as that takes no longer than the rest.
constexpr int kSmall = 48;
constexpr int64_t kSteps = 200'000;

absl::Status CheckProblem(const ScheduleProblem& problem) {
  const int S = problem.shape.stages(), P = problem.shape.ranks;
  const auto stages = [S](size_t size) { return size == static_cast<size_t>(S); };
  if (P < 1 || problem.shape.virtual_stages < 1 || problem.shape.microbatches < 1 ||
      !stages(problem.rank_of_stage.size()) || !stages(problem.times.size()) ||
      !stages(problem.memory.size()) || problem.limit.size() != static_cast<size_t>(P)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a schedule problem of ", P, " ranks and ", S, " stages got ranks of ",
                     problem.rank_of_stage.size(), " stages, times of ", problem.times.size(), ", memory of ",
                     problem.memory.size(), " and ", problem.limit.size(), " limits"));
  }
  for (const int rank : problem.rank_of_stage) {
    if (rank < 0 || rank >= P)
      return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " of ", P, " holds a stage"));
  }
  for (const StageLink& link : problem.links) {
    if (std::min(link.from_stage, link.to_stage) < 0 || std::max(link.from_stage, link.to_stage) >= S ||
        link.from_stage == link.to_stage) {
      return absl::InvalidArgumentError(absl::StrCat("link from stage ", link.from_stage, " to stage ",
                                                     link.to_stage, " of ", S, " stages"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FoundSchedule> FindBestSchedule(const ScheduleProblem& problem,
                                               absl::Span<const Schedule> starts) {
  RETURN_IF_ERROR(CheckProblem(problem));
  const Tasks tasks(problem);
  BestOrder best;
  best.bound = MakespanBound(problem);
  OrderTimer timer(tasks);
  for (const Schedule& start : starts) {
    const TaskOrder order = OrderOf(start, tasks);
    if (FitsMemory(order, tasks)) best.Offer(timer.Makespan(order), order);
  }
  bool is_best = best.IsBest();
  if (!is_best && tasks.size() <= kSmall) is_best = BranchAndBound(tasks, kSteps, best);
  if (!is_best) TunePriorities(tasks, static_cast<int>(kTuning / tasks.size()), best);
  if (!is_best && !best.IsBest()) {
    AnnealOrder(tasks, static_cast<int>(kAnnealing / tasks.size()),
                [&timer](const TaskOrder& order) { return timer.Makespan(order); }, best);
  }
  is_best |= best.IsBest();
  if (best.order.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no order of the actions of ", problem.shape.stages(), " stages on ",
                     problem.shape.ranks, " ranks was found that keeps to the memory of every rank"));
  }
  return FoundSchedule{ScheduleOf(best.order, tasks, problem), best.makespan, best.bound, is_best};
}

absl::StatusOr<Schedule> ShortenSpans(const ScheduleProblem& problem, absl::Span<const double> after,
                                      const Schedule& start) {
  RETURN_IF_ERROR(CheckProblem(problem));
  const Tasks tasks(problem);
  OrderTimer timer(tasks);
  const auto seconds = [&](const TaskOrder& order) { return timer.LongestSpan(order, after); };
  BestOrder best;
  if (const TaskOrder order = OrderOf(start, tasks); FitsMemory(order, tasks)) best.Offer(seconds(order), order);
  if (best.order.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("schedule ", start.name, " keeps more than the memory of a rank"));
  }
  std::vector<double> work(after.begin(), after.end());
  for (const Tasks::Stage& stage : tasks.stages) {
    work[stage.rank] += (stage.seconds[kRowF] + stage.seconds[kRowI] + stage.seconds[kRowW]) * tasks.microbatches;
  }
  best.bound = *std::max_element(work.begin(), work.end());
  AnnealOrder(tasks, static_cast<int>(kAnnealing / tasks.size()), seconds, best);
  return ScheduleOf(best.order, tasks, problem);
}

}  // namespace pipec
