#include "compiler/report/step_picture.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace pipec {

StepPicture ModelledStep(const Module& module, const Origins& origins) {
  StepPicture picture;
  picture.times = NameOfSimulated(origins);
  picture.schedule = module.schedule.name;
  picture.shape = module.schedule.shape;
  for (const Stage& stage : module.stages) {
    picture.rank_of_stage.push_back(stage.rank);
    picture.recomputing_stages += !stage.recomputed.empty();
  }
  picture.step_seconds = module.simulation.step_seconds;
  picture.bubble_ratio = module.simulation.bubble_ratio;
  for (const RankMemory& memory : module.memory)
    picture.peak_bytes = std::max(picture.peak_bytes, memory.arena_bytes);
  picture.memory = MemoryOverTime(module);

  absl::flat_hash_map<std::pair<int, int>, int> link_of;
  for (const Message& message : module.messages) {
    if (message.kind != MessageKind::kActivation && message.kind != MessageKind::kGradient) continue;
    if (module.stages[message.from_stage].rank == module.stages[message.to_stage].rank) continue;
    link_of[{message.from_stage, message.to_stage}] = picture.links.size();
    PictureLink& link = picture.links.emplace_back(PictureLink{message.from_stage, message.to_stage});
    for (const Value* value : message.node->inputs()) link.bytes += value->type.bytes();
  }
  for (int rank = 0; rank < module.simulation.ranks.size(); ++rank) {
    const std::vector<SimulatedAction>& slices = module.simulation.ranks[rank];
    std::vector<SimulatedAction>& drawn = picture.ranks.emplace_back();
    for (const SimulatedAction& slice : slices) {
      const Action& action = slice.action;
      if (action.kind == ActionKind::kSendF || action.kind == ActionKind::kSendB) {
        const auto link = link_of.find({action.stage, action.peer_stage});
        if (link != link_of.end())
          picture.messages.push_back({link->second, action.microbatch, slice.start, slice.end});
      } else if (!IsMessage(action.kind) && action.kind != ActionKind::kReduceGrad) {
        drawn.push_back(slice);
      }
    }
  }
  return picture;
}

}  // namespace pipec
