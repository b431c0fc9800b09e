// V-Half and V-Min (Qi et al., Pipeline Parallelism with Controllable Memory, 2405.15362): a building block for one
// microbatch, repeated every 6 units of time (F, I and W of two half stages), with V placement. When the four
// actions of the block stand on each rank decides how long activations are kept, and so how many. The block of
// V-Min with P = 4, the stage of the second half as ':
//
//   rank 0  F  .. .. .. .. .. .. F' I' .. .. .. .. .. .. I
//   rank 1  .. F  .. .. .. .. F' .. .. I' .. .. .. .. I
//   rank 2  .. .. F  .. .. F' .. .. .. .. I' .. .. I
//   rank 3  .. .. .. F  F' .. .. .. .. .. .. I' I
//
// W goes into the slots that stay free, in order. Then actions move ahead of others that have to wait, as long as the
// most activations that a rank keeps do not become more.
#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "compiler/schedule/generators.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kPeriod = 6;

// Times on a rank of F and I of its two stages within the block: F, F', I', I.
using Block = std::array<int, 4>;

Block HalfBlock(int P, int r) {
  const int delay = P % 2 == 0 ? 3 : 0;  // keeps the four apart modulo the period
  return {2 * r, 3 * P - 2 - r, 3 * P + delay + 2 * r - 1, 6 * P + delay - 2 - r};
}

Block MinBlock(int P, int r) {
  const int delay = P % 3 == 0 ? 2 : 0;
  return {r, 2 * P - 1 - r, 2 * P + delay + r, 4 * P + delay - 1 - r};
}

std::deque<Action> RepeatBlock(const Block& block, int first_stage, int second_stage, int microbatches) {
  std::map<int, Action> at;
  for (int m = 0; m < microbatches; ++m) {
    at[block[0] + kPeriod * m] = {ActionKind::kF, first_stage, m};
    at[block[1] + kPeriod * m] = {ActionKind::kF, second_stage, m};
    at[block[2] + kPeriod * m] = {ActionKind::kI, second_stage, m};
    at[block[3] + kPeriod * m] = {ActionKind::kI, first_stage, m};
  }
  std::deque<Action> list, pending;
  for (int time = at.begin()->first; time <= at.rbegin()->first; ++time) {
    if (const auto it = at.find(time); it != at.end()) {
      list.push_back(it->second);
      if (it->second.kind == ActionKind::kI)
        pending.push_back({ActionKind::kW, it->second.stage, it->second.microbatch});
    } else if (!pending.empty()) {
      list.push_back(pending.front());
      pending.pop_front();
    }
  }
  list.insert(list.end(), pending.begin(), pending.end());
  return list;
}

// How an action changes the number of activations kept.
int Change(const Action& action) {
  return action.kind == ActionKind::kF ? 1 : action.kind == ActionKind::kW ? -1 : 0;
}

// Runs the lists with all times equal; a rank whose next action waits takes the first one behind it that does not.
class MoveAhead {
 public:
  MoveAhead(std::vector<std::deque<Action>> lists, Schedule& schedule)
      : lists_(std::move(lists)), schedule_(schedule), kept_(lists_.size(), 0), most_(lists_.size(), 0) {
    for (auto& counts : done_) counts.assign(schedule.shape.stages(), 0);
    for (size_t r = 0; r < lists_.size(); ++r) {
      int kept = 0;
      for (const Action& action : lists_[r]) most_[r] = std::max(most_[r], kept += Change(action));
    }
  }

  void Run() {
    while (std::any_of(lists_.begin(), lists_.end(), [](const auto& list) { return !list.empty(); })) {
      std::vector<Action> now;
      for (size_t r = 0; r < lists_.size(); ++r) {
        const int k = Pick(r);
        if (k < 0) continue;
        const Action action = lists_[r][k];
        lists_[r].erase(lists_[r].begin() + k);
        schedule_.ranks[r].push_back(action);
        kept_[r] += Change(action);
        now.push_back(action);
      }
      for (const Action& action : now) ++done_[Row(action.kind)][action.stage];
    }
  }

 private:
  static int Row(ActionKind kind) { return kind == ActionKind::kF ? 0 : kind == ActionKind::kI ? 1 : 2; }

  bool IsReady(const Action& action) const {
    const int s = action.stage, m = action.microbatch;
    const auto& [f, i, w] = done_;
    if (action.kind == ActionKind::kF) return s == 0 || f[s - 1] > m;
    if (action.kind == ActionKind::kI) return f[s] > m && (s + 1 == schedule_.shape.stages() || i[s + 1] > m);
    return i[s] > m;
  }

  // The place in the rank's list, or -1. An F that moves ahead adds an activation to all that stands before it.
  int Pick(size_t r) const {
    int kept = kept_[r], most = kept;
    for (int k = 0; k < static_cast<int>(lists_[r].size()); ++k) {
      const Action& action = lists_[r][k];
      const bool fits = k == 0 || action.kind != ActionKind::kF || most + 1 <= most_[r];
      // Actions of one kind keep their order: one behind another of its own is not ready before that one is done.
      if (fits && action.microbatch == done_[Row(action.kind)][action.stage] && IsReady(action)) return k;
      most = std::max(most, kept += Change(action));
      if (action.microbatch > done_[Row(action.kind)][action.stage] + kPeriod)
        break;  // far behind what is next
    }
    return -1;
  }

  std::vector<std::deque<Action>> lists_;  // what is left to do, by rank
  Schedule& schedule_;
  std::vector<int> kept_, most_;          // activations, by rank
  std::array<std::vector<int>, 3> done_;  // microbatches, by row and stage
};

absl::StatusOr<Schedule> Generate(absl::string_view name, const ScheduleShape& shape,
                                  Block (*block)(int, int)) {
  RETURN_IF_ERROR(NeedsTwoStagesARank(name, shape));
  ASSIGN_OR_RETURN(Schedule schedule, EmptySchedule(name, shape, Placement::kV));
  const int P = shape.ranks;
  std::vector<std::deque<Action>> lists;
  for (int r = 0; r < P; ++r) lists.push_back(RepeatBlock(block(P, r), r, 2 * P - 1 - r, shape.microbatches));
  MoveAhead(std::move(lists), schedule).Run();
  return schedule;
}

}  // namespace

absl::StatusOr<Schedule> GenerateVHalf(const ScheduleShape& shape) {
  return Generate("v-half", shape, HalfBlock);
}

absl::StatusOr<Schedule> GenerateVMin(const ScheduleShape& shape) {
  return Generate("v-min", shape, MinBlock);
}

}  // namespace pipec
