#include "compiler/report/memory_over_time.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace pipec {
namespace {

// An action of any microbatch: kind, stage, stage at the other end (-1 unless a message).
using ActionOf = std::tuple<ActionKind, int, int>;

struct Span {
  double start = 0;
  double end = 0;
};

// Per buffer with slots, the actions that touch it.
std::vector<std::set<ActionOf>> Touching(const Module& module, int rank) {
  const RankMemory& memory = module.memory[rank];
  std::vector<std::set<ActionOf>> touching(memory.buffers.size());
  const auto touch = [&](const Value* value, const ActionOf& action) {
    const auto found = memory.locations.find(value);
    if (found != memory.locations.end()) touching[found->second.buffer].insert(action);
  };
  for (const Program& program : memory.programs) {
    if (!IsCompute(program.kind)) continue;
    for (const Node* node : program.nodes) {
      for (const Value* value : node->inputs()) touch(value, {program.kind, program.stage, -1});
      for (const Value* value : node->outputs()) touch(value, {program.kind, program.stage, -1});
    }
  }
  for (const Message& message : module.messages) {
    if (message.kind != MessageKind::kActivation && message.kind != MessageKind::kGradient) continue;
    const bool forward = message.kind == MessageKind::kActivation;
    const int from = message.from_stage, to = message.to_stage;
    if (module.stages[from].rank == rank) {
      for (const Value* value : message.node->inputs())
        touch(value, {forward ? ActionKind::kSendF : ActionKind::kSendB, from, to});
    }
    if (module.stages[to].rank == rank) {
      for (const Value* value : message.node->outputs())
        touch(value, {forward ? ActionKind::kRecvF : ActionKind::kRecvB, to, from});
    }
  }
  return touching;
}

MemoryCurve CurveOf(const Module& module, int rank) {
  const RankMemory& memory = module.memory[rank];
  const int microbatches = module.schedule.shape.microbatches;
  absl::flat_hash_map<ActionOf, std::vector<Span>> when;
  for (const SimulatedAction& slice : module.simulation.ranks[rank]) {
    const Action& action = slice.action;
    if (action.microbatch < 0) continue;
    std::vector<Span>& spans = when[{action.kind, action.stage, action.peer_stage}];
    spans.resize(microbatches);
    spans[action.microbatch] = {slice.start, slice.end};
  }
  MemoryCurve curve;
  curve.reserved_bytes = memory.arena_bytes;
  // Buffers that the same actions touch live and die together.
  std::map<std::set<ActionOf>, int64_t> bytes_of;
  const std::vector<std::set<ActionOf>> touching = Touching(module, rank);
  for (int b = 0; b < memory.buffers.size(); ++b) {
    const Buffer& buffer = memory.buffers[b];
    const bool always = buffer.slot_class >= 0 && (module.schedule.asynchronous() ||
                                                   memory.slot_classes[buffer.slot_class].rule == SlotRule::kVersion);
    if (always) {
      curve.always_bytes +=
          buffer.slots() * buffer.aligned_bytes();  // steps overlap: no slot is ever long without use
    } else if (buffer.slot_class >= 0 && buffer.kind != BufferKind::kTransient) {
      bytes_of[touching[b]] += buffer.aligned_bytes();
    } else if (buffer.kind == BufferKind::kParameter || buffer.kind == BufferKind::kGradient ||
               buffer.kind == BufferKind::kOptimizerState || buffer.kind == BufferKind::kConstant) {
      curve.always_bytes += buffer.aligned_bytes();
    }
  }
  std::map<double, int64_t> change = {{0, curve.always_bytes}};
  for (const auto& [actions, bytes] : bytes_of) {
    for (int m = 0; m < microbatches; ++m) {
      Span life{module.simulation.makespan, 0};
      for (const ActionOf& action : actions) {
        const auto found = when.find(action);
        if (found == when.end()) continue;  // a message between stages of one rank
        life.start = std::min(life.start, found->second[m].start);
        life.end = std::max(life.end, found->second[m].end);
      }
      if (life.end <= life.start) continue;
      change[life.start] += bytes;
      change[life.end] -= bytes;
    }
  }
  int64_t now = 0;
  for (const auto& [seconds, difference] : change) {
    now += difference;
    if (curve.points.empty() || curve.points.back().bytes != now) curve.points.push_back({seconds, now});
  }
  return curve;
}

}  // namespace

std::vector<MemoryCurve> MemoryOverTime(const Module& module) {
  std::vector<MemoryCurve> curves;
  for (int rank = 0; rank < module.memory.size(); ++rank) curves.push_back(CurveOf(module, rank));
  return curves;
}

}  // namespace pipec
