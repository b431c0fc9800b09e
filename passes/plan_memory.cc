// Gives every value of every rank its bytes.
//
//   before:  ordered actions            after:  rank 0: h@2  message 4096 bytes x 3 slots at 65536, ...
//
// What one program makes and uses up lives for some of its instructions. What several actions share has
// slots, as many as microbatches are live at once, and takes turns in them with what other stages share (slots.h), but for what is made of parameters alone, which is
// computed once a step (once_a_step.h). Parameters, accumulators, optimizer state and
// constants stay. All of it is one layout problem a rank (compiler/memory) over a time axis made of the
// programs one after the other, where a B that repeats its stage's I and W shares their time: what has slots is live in
// all of the compute part, what stays is live always, and the update reuses what the compute part had. Where the step
// before is validated late, what an update reads stays until then, and what it writes has two places; if that does not
// fit, updates wait again.
#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/once_a_step.h"
#include "compiler/ir/validate_at.h"
#include "compiler/memory/layout.h"
#include "compiler/onnx/schema/infer.h"
#include "compiler/ops/op_info.h"
#include "passes/check_in_place.h"
#include "passes/memory_limit.h"
#include "passes/passes.h"
#include "passes/rank_programs.h"
#include "passes/round_slots.h"
#include "passes/simulate_update.h"
#include "passes/slots.h"
#include "passes/storages.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// The time axis: instruction j of program p happens at start[p] + j.
struct TimeAxis {
  std::vector<int64_t> start;
  int64_t compute_end = 0;
  int64_t end = 0;
};

TimeAxis MakeTimeAxis(const std::vector<Program>& programs) {
  TimeAxis axis;
  for (int p = 0; p < programs.size(); ++p) {
    axis.start.push_back(axis.end);
    if (RepeatsIAndW(programs, p)) continue;
    axis.end += std::max<int64_t>(1, programs[p].nodes.size());
    if (IsCompute(programs[p].kind)) axis.compute_end = axis.end;
  }
  return axis;
}

bool OnceAStep(const Storage& storage, const std::vector<Program>& programs) {
  auto once = [](const Message* message) {
    return message->kind == MessageKind::kTied || message->kind == MessageKind::kNorm;
  };
  return std::all_of(
             storage.accesses.begin(), storage.accesses.end(),
             [&](const StorageAccess& access) { return !IsCompute(programs[access.program].kind); }) &&
         std::all_of(storage.sent.begin(), storage.sent.end(), once) &&
         std::all_of(storage.received.begin(), storage.received.end(), once);
}

BufferKind KindOf(const Storage& storage, const std::vector<Program>& programs) {
  for (const Value* value : storage.values) {
    switch (value->kind()) {
      case ValueKind::kParameter:
        return BufferKind::kParameter;
      case ValueKind::kConstant:
        return BufferKind::kConstant;
      case ValueKind::kAccumulator:
        return BufferKind::kGradient;
      case ValueKind::kState:
        return BufferKind::kOptimizerState;
      case ValueKind::kInput:
        return BufferKind::kInput;
      case ValueKind::kResult:
        break;
    }
  }
  if (!storage.received.empty()) return BufferKind::kMessage;
  if (storage.local() || OnceAStep(storage, programs)) return BufferKind::kTransient;
  bool forward = false, backward = false;
  for (const StorageAccess& access : storage.accesses) {
    (programs[access.program].kind == ActionKind::kF ? forward : backward) = true;
  }
  if (storage.accesses.size() > 1 && (backward || storage.sent.empty())) return BufferKind::kActivation;
  if (!storage.sent.empty()) return BufferKind::kMessage;
  return storage.output ? BufferKind::kOutput : BufferKind::kActivation;
}

// The actions that touch a storage.
std::set<ActionOf> ActionsOf(const Storage& storage, const std::vector<Program>& programs) {
  std::set<ActionOf> actions;
  for (const StorageAccess& access : storage.accesses) {
    const Program& program = programs[access.program];
    actions.insert({program.kind, program.kind == ActionKind::kNorm ? -1 : program.stage, -1});
    // Some microbatches run B instead.
    if (program.kind == ActionKind::kI || program.kind == ActionKind::kW)
      actions.insert({ActionKind::kB, program.stage, -1});
  }
  const auto once_a_step = [&](const Message* m) {
    const bool tied = m->kind == MessageKind::kTied, norm = m->kind == MessageKind::kNorm;
    if (tied || norm) actions.insert({tied ? ActionKind::kReduceTied : ActionKind::kNorm, -1, -1});
    return tied || norm;
  };
  for (const Message* m : storage.received) {
    if (once_a_step(m)) continue;
    actions.insert({m->kind == MessageKind::kActivation ? ActionKind::kRecvF : ActionKind::kRecvB,
                    m->to_stage, m->from_stage});
  }
  for (const Message* m : storage.sent) {
    if (once_a_step(m)) continue;
    actions.insert({m->kind == MessageKind::kActivation ? ActionKind::kSendF : ActionKind::kSendB,
                    m->from_stage, m->to_stage});
  }
  return actions;
}

// Forward nodes that depend on nothing but parameters that no forward node writes, and constants.
absl::flat_hash_set<const Node*> NodesOfWeights(const Graph& graph) {
  absl::flat_hash_set<const Node*> found;
  const auto written = [](const Use& use) {
    return use.node->kind == Kind::kF && AliasOf(*use.node) == Alias::kSameMemory;
  };
  const auto is_weight = [&](const Value* value) {
    if (!value || value->kind() == ValueKind::kConstant || found.contains(value->producer())) return true;
    return value->kind() == ValueKind::kParameter &&
           std::none_of(value->uses().begin(), value->uses().end(), written);
  };
  for (const Node* node : graph.Nodes()) {
    if (node->kind == Kind::kF && IsDeterministic(node->op(), node->domain()) &&
        std::all_of(node->inputs().begin(), node->inputs().end(), is_weight)) {
      found.insert(node);
    }
  }
  return found;
}

// Whether a storage that several actions of a microbatch share is the same for all microbatches.
bool IsMadeOfWeights(const Storage& storage, const absl::flat_hash_set<const Node*>& of_weights) {
  return !storage.input && !storage.output && storage.sent.empty() && storage.received.empty() &&
         std::all_of(storage.values.begin(), storage.values.end(),
                     [&](const Value* value) { return of_weights.contains(value->producer()); });
}

// When a storage of a program, or of what happens once a step, is live.
MemoryItem Lifetime(const Storage& storage, const TimeAxis& axis, bool once_a_step) {
  MemoryItem item{axis.end, 0};
  for (const StorageAccess& access : storage.accesses) {
    item.lower = std::min(item.lower, axis.start[access.program] + access.first);
    item.upper = std::max(item.upper, axis.start[access.program] + access.last + 1);
  }
  if (once_a_step) {
    // Receives are posted before, and sends complete after, the programs between which they stand.
    if (!storage.received.empty()) item.lower = axis.compute_end;
    if (!storage.sent.empty() || storage.output) item.upper = axis.end;
  }
  item.upper = std::max(item.upper, item.lower);
  return item;
}

// Solves the layout; buffer k lies where item item_of[k] does.
absl::Status LayOut(const std::vector<MemoryItem>& items, const std::vector<int>& item_of, RankMemory& memory) {
  const MemoryLayout layout = SolveLayout(items);
  RETURN_IF_ERROR(CheckLayout(items, layout));
  for (size_t k = 0; k < item_of.size(); ++k) memory.buffers[k].offset = layout.offsets[item_of[k]];
  memory.arena_bytes = layout.peak;
  memory.lower_bound = MemoryLowerBound(items);
  return absl::OkStatus();
}

// Whether the storage is a parameter's that learns: the update's result lies there too.
bool Learns(const Storage& storage) {
  bool parameter = false, updated = false;
  for (const Value* value : storage.values) {
    parameter |= value->kind() == ValueKind::kParameter;
    updated |= value->producer() && value->producer()->kind == Kind::kU;
  }
  return parameter && updated;
}

bool IsState(const Storage& storage) {
  return std::any_of(storage.values.begin(), storage.values.end(),
                     [](const Value* value) { return value->kind() == ValueKind::kState; });
}

// Where steps overlap: only what one program makes and uses up has an end.
absl::Status PlanRounds(const Module& module, int rank, const std::vector<Storage>& storages,
                        const absl::flat_hash_set<const Node*>& of_weights, RankMemory& memory) {
  const TimeAxis axis = MakeTimeAxis(memory.programs);
  RoundSlots slots(module, rank);
  const auto class_of = [&](const Storage& storage) {
    if (Learns(storage) || (!storage.keeps && IsMadeOfWeights(storage, of_weights))) return slots.OfVersions();
    const bool sum = std::any_of(storage.values.begin(), storage.values.end(), [](const Value* value) {
      return value->kind() == ValueKind::kAccumulator;
    });
    const std::set<ActionOf> actions = ActionsOf(storage, memory.programs);
    if (sum || OnceAStep(storage, memory.programs)) return slots.OfSteps(actions);
    return storage.keeps ? -1 : slots.OfMicrobatches(actions);
  };
  std::vector<MemoryItem> items;
  for (const Storage& storage : storages) {
    Buffer buffer{storage.named->name(), KindOf(storage, memory.programs), storage.bytes};
    MemoryItem item{0, axis.end};
    if (storage.local()) {
      item = Lifetime(storage, axis, false);
    } else {
      buffer.slot_class = class_of(storage);
      if (buffer.slot_class >= 0) buffer.slots = slots.classes()[buffer.slot_class].slots;
    }
    item.size = buffer.slots * buffer.stride();
    items.push_back(item);
    for (const Value* value : storage.values) memory.locations[value] = {static_cast<int>(memory.buffers.size()), 0};
    memory.buffers.push_back(std::move(buffer));
  }
  memory.slot_classes = slots.classes();
  std::vector<int> item_of(items.size());
  std::iota(item_of.begin(), item_of.end(), 0);
  return LayOut(items, item_of, memory);
}

// Adds what the stages of the rank keep in flight to `kept`.
absl::StatusOr<RankMemory> PlanRank(const Module& module, int rank, RankPrograms programs,
                                    const absl::flat_hash_set<const Node*>& of_weights,
                                    std::vector<KeptBytes>& kept) {
  const std::vector<Storage> storages = BuildStorages(module, rank, programs);
  RankMemory memory;
  memory.programs = std::move(programs.programs);
  if (module.schedule.asynchronous()) {
    RETURN_IF_ERROR(PlanRounds(module, rank, storages, of_weights, memory));
    return memory;
  }
  const TimeAxis axis = MakeTimeAxis(memory.programs);
  std::vector<MemoryItem> items;  // of the buffers without slots, then of the pools of slots
  std::vector<int> item_of, with_slots;
  std::vector<SlotUser> users;
  const bool late = !ValidateAt(module).empty();
  std::vector<int> with_versions;
  for (const Storage& storage : storages) {
    const int k = static_cast<int>(memory.buffers.size());
    Buffer buffer{storage.named->name(), KindOf(storage, memory.programs), storage.bytes};
    const bool once_a_step = OnceAStep(storage, memory.programs);
    const bool passing = !storage.keeps && (storage.local() || once_a_step);
    if (!storage.keeps && !passing && !IsMadeOfWeights(storage, of_weights)) {
      users.push_back({ActionsOf(storage, memory.programs), buffer.stride()});
      with_slots.push_back(k);
      AddKept(users.back().actions, buffer.stride(), kept);
    } else {
      MemoryItem item = {0, storage.keeps ? axis.end : axis.compute_end};
      if (passing) item = Lifetime(storage, axis, once_a_step);
      if (late && once_a_step && !storage.local()) item = {0, axis.end};
      if (late && (Learns(storage) || IsState(storage))) {
        with_versions.push_back(k);
        buffer.slots = 2;
      }
      item.size = buffer.slots * buffer.stride();
      items.push_back(item);
    }
    item_of.push_back(static_cast<int>(items.size()) - 1);
    for (const Value* value : storage.values) memory.locations[value] = {k, 0};
    memory.buffers.push_back(std::move(buffer));
  }
  SlotPlan slots = PlanSlots(module, rank, users);
  for (size_t u = 0; u < users.size(); ++u) {
    Buffer& buffer = memory.buffers[with_slots[u]];
    const SlotPool& pool = slots.pools[slots.pool_of[u]];
    buffer.slot_class = slots.class_of[u];
    buffer.slots = pool.slots;
    // Its slots are where those of the others in the pool are.
    if (buffer.stride() != pool.stride) buffer.bytes = pool.stride;
    item_of[with_slots[u]] = static_cast<int>(items.size()) + slots.pool_of[u];
  }
  for (const SlotPool& pool : slots.pools) items.push_back({0, axis.compute_end, pool.slots * pool.stride});
  memory.slot_classes = std::move(slots.classes);
  if (!with_versions.empty()) {
    for (const int k : with_versions) memory.buffers[k].slot_class = static_cast<int>(memory.slot_classes.size());
    memory.slot_classes.push_back({.slots = 2, .rule = SlotRule::kVersion});
  }
  RETURN_IF_ERROR(LayOut(items, item_of, memory));
  return memory;
}

// All kernels of a rank share one workspace.
int64_t WorkspaceBytes(const RankMemory& memory, int rank, const CompileOptions& options) {
  int64_t bytes = 0;
  if (!options.workspace_bytes) return bytes;
  for (const Program& program : memory.programs) {
    for (const Node* node : program.nodes) bytes = std::max(bytes, options.workspace_bytes(*node, rank));
  }
  return bytes;
}

absl::Status PlanRanks(Module& module, const CompileOptions& options) {
  module.memory.clear();
  std::vector<RankPrograms> ranks = BuildPrograms(module);
  const absl::flat_hash_set<const Node*> of_weights = NodesOfWeights(module.graph);
  std::vector<KeptBytes> kept(module.stages.size());
  for (int r = 0; r < ranks.size(); ++r) {
    ASSIGN_OR_RETURN(RankMemory memory, PlanRank(module, r, std::move(ranks[r]), of_weights, kept));
    RETURN_IF_ERROR(CheckInPlace(memory));
    memory.workspace_bytes = WorkspaceBytes(memory, r, options);
    module.memory.push_back(std::move(memory));
  }
  return CheckMemoryLimit(module, options, std::move(kept));
}

}  // namespace

absl::StatusOr<bool> PlanMemory(Module& module, const PassContext& context) {
  absl::Status status = PlanRanks(module, context.options);
  if (absl::IsResourceExhausted(status) && !ValidateAt(module).empty()) {
    SetValidateAt(module, {});
    SimulateUpdate(module, context.options.cluster);
    status = PlanRanks(module, context.options);
  }
  if (!status.ok()) return status;
  return true;
}

}  // namespace pipec
