// By running the rounds, step by step, on a model of the versions' places. Shares only Unroll with what makes rounds.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/rounds.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// One rank, from the first action to the last.
class RankRun {
 public:
  RankRun(const Schedule& rounds, int rank, int steps)
      : rounds_(rounds),
        rank_(rank),
        places_(rounds.weight_delay[rank] + 1),
        held_(rounds.shape.stages(), std::vector<int>(places_, kNone)),
        gradients_(rounds.shape.stages(), std::vector<int>(steps, 0)),
        updates_(rounds.shape.stages(), 0),
        has_update_(rounds.shape.stages(), false) {
    for (auto& held : held_) held[0] = 0;
    for (const Action& action : rounds.ranks[rank]) {
      has_norm_ |= action.kind == ActionKind::kNorm;
      if (action.kind == ActionKind::kUpdate) has_update_[action.stage] = true;
    }
  }

  absl::Status Check(const Unrolled& unrolled) {
    for (size_t k = 0; k < unrolled.places[rank_].size(); ++k) {
      const RoundPlace& place = unrolled.places[rank_][k];
      const absl::Status status = Run(unrolled.schedule.ranks[rank_][k], place.step);
      if (status.ok()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "schedule ", rounds_.name, ": rank ", rank_, ", position ", place.index, " of round ", place.round, ", ",
          ToString(rounds_.ranks[rank_][place.index]), ": ", status.message()));
    }
    return absl::OkStatus();
  }

  bool has_norm() const { return has_norm_; }

 private:
  static constexpr int kNone = -1;

  static absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

  absl::Status Holds(int stage, int version) const {
    const int there = held_[stage][version % places_];
    if (there == version) return absl::OkStatus();
    return Bad(absl::StrCat("needs weight version ", version, ", where ",
                            there == kNone ? "none" : absl::StrCat("version ", there), " is"));
  }

  absl::Status HasGradients(int stage, int step) const {
    if (gradients_[stage][step] == rounds_.shape.microbatches) return absl::OkStatus();
    return Bad("before the last gradient of its step");
  }

  absl::Status Run(const Action& action, int step) {
    const int stage = action.stage;
    if (IsMessage(action.kind)) return absl::OkStatus();
    if (IsCompute(action.kind)) {
      if (action.kind == ActionKind::kB || action.kind == ActionKind::kW) ++gradients_[stage][step];
      return has_update_[stage] ? Holds(stage, std::max(0, step - places_ + 1)) : absl::OkStatus();
    }
    if (action.kind == ActionKind::kUpdate) {
      if (rounds_.rank_of_stage[stage] != rank_) return Bad("updates a stage of another rank");
      if (updates_[stage]++ != step) return Bad("twice, or out of the order of steps");
      RETURN_IF_ERROR(HasGradients(stage, step));
      if (has_norm_ && norms_ <= step) return Bad("before the norms that it needs");
      RETURN_IF_ERROR(Holds(stage, step));
      held_[stage][(step + 1) % places_] = step + 1;
      return absl::OkStatus();
    }
    for (int s = 0; s < rounds_.shape.stages(); ++s) {
      if (rounds_.rank_of_stage[s] == rank_) RETURN_IF_ERROR(HasGradients(s, step));
    }
    if (action.kind == ActionKind::kReduceTied && norms_ > step) return Bad("after the norms that need it");
    int& count = action.kind == ActionKind::kNorm ? norms_ : ties_;
    return count++ == step ? absl::OkStatus() : Bad("twice, or out of the order of steps");
  }

  const Schedule& rounds_;
  const int rank_, places_;
  std::vector<std::vector<int>> held_;       // by stage and place: the version there
  std::vector<std::vector<int>> gradients_;  // by stage and step: how many are made
  std::vector<int> updates_;                 // by stage
  std::vector<bool> has_update_;
  bool has_norm_ = false;
  int ties_ = 0, norms_ = 0;
};

Schedule WithoutOnceAStep(Schedule schedule) {
  for (auto& list : schedule.ranks) {
    std::erase_if(list, [](const Action& action) { return !IsCompute(action.kind) && !IsMessage(action.kind); });
  }
  return schedule;
}

}  // namespace

absl::Status CheckRounds(const Schedule& rounds, absl::Span<const StageLink> links) {
  const auto bad = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("schedule ", rounds.name, ": ", what...));
  };
  const int P = rounds.shape.ranks, M = rounds.shape.microbatches;
  if (static_cast<int>(rounds.weight_delay.size()) != P || static_cast<int>(rounds.ranks.size()) != P ||
      static_cast<int>(rounds.rank_of_stage.size()) != rounds.shape.stages() || M < 1)
    return bad("not one list and one delay a rank, and one rank a stage");
  for (int r = 0; r < P; ++r) {
    int least = rounds.ranks[r].empty() ? 0 : rounds.ranks[r][0].lag;
    for (size_t k = 0; k < rounds.ranks[r].size(); ++k) {
      const Action& action = rounds.ranks[r][k];
      least = std::min(least, action.lag);
      const bool exchange = action.kind == ActionKind::kReduceTied || action.kind == ActionKind::kNorm;
      if (action.stage >= rounds.shape.stages() || (action.stage < 0 && !exchange) || action.microbatch >= M ||
          action.lag > 2 * P + 2)
        return bad("rank ", r, ", position ", k, ", ", ToString(action), ": stage, microbatch or lag out of range");
    }
    if (least != 0) return bad("rank ", r, ": its smallest lag is ", least, ", not 0");
    if (rounds.weight_delay[r] < 0 || rounds.weight_delay[r] > P)
      return bad("rank ", r, ": a weight delay of ", rounds.weight_delay[r]);
  }
  const int steps = LargestLag(rounds) + 4;
  const Unrolled unrolled = Unroll(rounds, steps);
  RETURN_IF_ERROR(CheckSchedule(WithoutOnceAStep(unrolled.schedule), links));
  int with_norms = 0;
  for (int r = 0; r < P; ++r) {
    RankRun run(rounds, r, steps);
    RETURN_IF_ERROR(run.Check(unrolled));
    with_norms += run.has_norm();
  }
  if (with_norms != 0 && with_norms != P) return bad("NORM on ", with_norms, " ranks of ", P);
  return absl::OkStatus();
}

}  // namespace pipec
