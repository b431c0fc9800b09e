#include "passes/rank_timeline.h"

#include <algorithm>

namespace pipec {
namespace {

ActionOf KeyOf(const Action& action) {
  return {action.kind, action.kind == ActionKind::kNorm ? -1 : action.stage,
          action.microbatch < 0 ? -1 : action.peer_stage};
}

ActionOf KeyOf(const Program& program) {
  return {program.kind, program.kind == ActionKind::kNorm ? -1 : program.stage, -1};
}

}  // namespace

RankTimeline::RankTimeline(const std::vector<Program>& programs, const std::vector<Action>& list,
                           absl::Span<const SimulatedAction> simulated, int microbatches)
    : programs_(programs), microbatches_(microbatches) {
  absl::flat_hash_map<ActionOf, int64_t> lengths;
  for (const Program& program : programs)
    lengths[KeyOf(program)] = static_cast<int64_t>(program.nodes.size());
  int64_t now = 0;
  exchange_ = -1;
  for (int k = 0; k < static_cast<int>(list.size()); ++k) {
    const auto length = lengths.find(KeyOf(list[k]));
    const bool exchanges = list[k].kind == ActionKind::kReduceTied || list[k].kind == ActionKind::kNorm;
    if (exchanges && exchange_ < 0) exchange_ = now;
    std::vector<int>& places = positions_[KeyOf(list[k])];
    places.resize(list[k].microbatch < 0 ? 1 : microbatches, -1);
    places[std::max(0, list[k].microbatch)] = k;
    starts_.push_back(now);
    now += length == lengths.end() ? 1 : std::max<int64_t>(1, length->second);
  }
  starts_.push_back(now);
  if (exchange_ < 0) exchange_ = now;
  for (int k = 0; k < static_cast<int>(list.size()); ++k) {
    int last = k;
    for (int j = k + 1; Sends(list[k].kind) && j < static_cast<int>(simulated.size()); ++j) {
      if (!IsCompute(simulated[j].action.kind)) continue;
      if (simulated[j].start >= simulated[k].end) break;
      last = j;
    }
    arrived_.push_back(starts_[last + 1]);
  }
  for (const Program& program : programs) {
    std::vector<Run>& runs = runs_.emplace_back(IsCompute(program.kind) ? microbatches : 1);
    // An I and a W are parts of the B that some microbatches run instead.
    int64_t behind = 0;
    if (const auto input = lengths.find({ActionKind::kI, program.stage, -1}); program.kind == ActionKind::kW)
      behind = input == lengths.end() ? 0 : input->second;
    for (int m = 0; m < static_cast<int>(runs.size()); ++m) {
      if (const int own = PositionOf(KeyOf(program), m); own >= 0) runs[m] = {starts_[own], starts_[own]};
      if (program.kind != ActionKind::kI && program.kind != ActionKind::kW) continue;
      if (const int both = PositionOf({ActionKind::kB, program.stage, -1}, m); both >= 0)
        runs[m] = {starts_[both], starts_[both] + behind};
    }
  }
}

int RankTimeline::PositionOf(const ActionOf& action, int microbatch) const {
  const auto found = positions_.find(action);
  return found == positions_.end() ? -1 : found->second[microbatch];
}

std::vector<Life> RankTimeline::OfMicrobatches(const Storage& storage) const {
  std::vector<Life> lives(microbatches_, {end(), 0});
  const auto extend = [&](int m, int64_t lower, int64_t upper) {
    lives[m] = {std::min(lives[m].lower, lower), std::max(lives[m].upper, upper)};
  };
  for (const StorageAccess& access : storage.accesses) {
    const int64_t length = std::max<int64_t>(1, static_cast<int64_t>(programs_[access.program].nodes.size()));
    for (int m = 0; m < static_cast<int>(runs_[access.program].size()); ++m) {
      const Run& run = runs_[access.program][m];
      if (run.action < 0) continue;
      extend(m, storage.input ? run.action : run.first + access.first,
             run.first + (storage.output ? length : access.last + 1));
    }
  }
  for (const auto& [messages, sends] :
       {std::pair(&storage.sent, true), std::pair(&storage.received, false)}) {
    for (const Message* message : *messages) {
      const bool forward = message->kind == MessageKind::kActivation;
      const ActionOf action = sends ? ActionOf{forward ? ActionKind::kSendF : ActionKind::kSendB,
                                               message->from_stage, message->to_stage}
                                    : ActionOf{forward ? ActionKind::kRecvF : ActionKind::kRecvB,
                                               message->to_stage, message->from_stage};
      for (int m = 0; m < microbatches_; ++m) {
        const int place = PositionOf(action, m);
        if (place >= 0) extend(m, starts_[place], sends ? arrived_[place] : starts_[place + 1]);
      }
    }
  }
  return lives;
}

Life RankTimeline::OfStep(const Storage& storage) const {
  Life life{end(), 0};
  for (const StorageAccess& access : storage.accesses) {
    const Run& run = runs_[access.program][0];
    if (run.action < 0) continue;
    life.lower = std::min(life.lower, run.first + access.first);
    life.upper = std::max(life.upper, run.first + access.last + 1);
  }
  if (!storage.received.empty()) life.lower = std::min(life.lower, exchange_);
  if (!storage.sent.empty() || storage.output) life.upper = end();
  return life;
}

}  // namespace pipec
