#include "passes/plan_rounds.h"

#include <algorithm>
#include <numeric>

#include "compiler/memory/layout.h"
#include "passes/round_slots.h"
#include "passes/storage_use.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// The programs one after the other, where a B that repeats its stage's I and W shares their time: instruction j of
// program p happens at start[p] + j.
struct TimeAxis {
  std::vector<int64_t> start;
  int64_t end = 0;
};

TimeAxis MakeTimeAxis(const std::vector<Program>& programs) {
  TimeAxis axis;
  for (int p = 0; p < static_cast<int>(programs.size()); ++p) {
    axis.start.push_back(axis.end);
    if (!RepeatsIAndW(programs, p))
      axis.end += std::max<int64_t>(1, static_cast<int64_t>(programs[p].nodes.size()));
  }
  return axis;
}

}  // namespace

absl::Status PlanRounds(const Module& module, int rank, const std::vector<Storage>& storages,
                        const absl::flat_hash_set<const Node*>& of_weights, RankMemory& memory) {
  const TimeAxis axis = MakeTimeAxis(memory.programs);
  RoundSlots slots(module, rank);
  const auto class_of = [&](const Storage& storage) {
    if (Learns(storage) || (!storage.keeps && IsMadeOfWeights(storage, of_weights)))
      return slots.OfVersions();
    const bool sum = std::any_of(storage.values.begin(), storage.values.end(),
                                 [](const Value* value) { return value->kind() == ValueKind::kAccumulator; });
    const std::set<ActionOf> actions = ActionsOf(storage, memory.programs);
    if (sum || IsOfStep(storage, memory.programs)) return slots.OfSteps(actions);
    return storage.keeps ? -1 : slots.OfMicrobatches(actions);
  };
  std::vector<MemoryItem> items;
  for (const Storage& storage : storages) {
    Buffer buffer{storage.named->name(), KindOf(storage, memory.programs), storage.bytes};
    MemoryItem item{0, axis.end};
    if (storage.local()) {
      for (const StorageAccess& access : storage.accesses)
        item = {axis.start[access.program] + access.first, axis.start[access.program] + access.last + 1};
    } else {
      buffer.slot_class = class_of(storage);
      if (buffer.slot_class >= 0) buffer.offsets.resize(slots.classes()[buffer.slot_class].slots);
    }
    item.size = buffer.slots() * buffer.aligned_bytes();
    if (buffer.kind != BufferKind::kTransient) memory.peaks[static_cast<int>(buffer.kind)] += item.size;
    items.push_back(item);
    for (const Value* value : storage.values)
      memory.locations[value] = {static_cast<int>(memory.buffers.size()), 0};
    memory.buffers.push_back(std::move(buffer));
  }
  memory.slot_classes = slots.classes();
  const MemoryLayout layout = SolveLayout(items);
  RETURN_IF_ERROR(CheckLayout(items, layout));
  for (size_t k = 0; k < items.size(); ++k) {
    Buffer& buffer = memory.buffers[k];
    for (int slot = 0; slot < buffer.slots(); ++slot)
      buffer.offsets[slot] = layout.offsets[k] + slot * buffer.aligned_bytes();
  }
  memory.arena_bytes = layout.peak;
  memory.lower_bound = MemoryLowerBound(items);
  memory.peaks[static_cast<int>(BufferKind::kTransient)] =
      memory.arena_bytes - std::accumulate(memory.peaks.begin(), memory.peaks.end(), int64_t{0});
  return absl::OkStatus();
}

}  // namespace pipec
