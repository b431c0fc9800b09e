// Gives every value of every rank its bytes.
//
//   before:  ordered actions            after:  rank 0: h@2  message 4096 bytes at 65536, 81920, 69632, ...
//
// The time axis is the rank's list of actions, instruction by instruction (rank_timeline.h). What a microbatch has
// anew, for some instructions of one program or from a forward to a backward action, lies in each microbatch where
// it is free for so long: all of it is one layout problem a rank (place_microbatches.h), and another for the
// evaluation list. Below lies what both lists need all the time: parameters, accumulators, optimizer state and
// constants, and what is made of parameters alone, which is computed once a step (once_a_step.h). The update reuses
// what the microbatches had. Where the step before is validated late, what an update reads stays until then, and
// what it writes has two places; if that does not fit, updates wait again. Where steps overlap, slots take turns
// (plan_rounds.h).
#include <algorithm>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/once_a_step.h"
#include "compiler/ir/validate_at.h"
#include "passes/check_in_place.h"
#include "passes/memory_limit.h"
#include "passes/passes.h"
#include "passes/place_microbatches.h"
#include "passes/plan_rounds.h"
#include "passes/rank_programs.h"
#include "passes/rank_timeline.h"
#include "passes/simulate_update.h"
#include "passes/storage_use.h"
#include "passes/storages.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// All kernels of a rank share one workspace.
int64_t WorkspaceBytes(const RankMemory& memory, int rank, const CompileOptions& options) {
  int64_t bytes = 0;
  if (!options.workspace_bytes) return bytes;
  for (const Program& program : memory.programs) {
    for (const Node* node : program.nodes) bytes = std::max(bytes, options.workspace_bytes(*node, rank));
  }
  return bytes;
}

// What the device keeps of steps that are under way or fed ahead: two, or as many as overlap.
int64_t StepBytes(const Module& module, int rank, const std::vector<Storage>& storages,
                  const CompileOptions& options) {
  if (!options.step_bytes) return 0;
  absl::flat_hash_map<const Value*, int64_t> trained;
  for (const TrainedParameter& parameter : module.training.parameters)
    trained.emplace(parameter.parameter, static_cast<int64_t>(trained.size()));
  int64_t parameters = 0;
  std::vector<int64_t> inputs;
  for (const Storage& storage : storages) {
    for (const Value* value : storage.values) {
      if (value->kind() == ValueKind::kInput) inputs.push_back(value->type.bytes());
      if (const auto it = trained.find(value); it != trained.end())
        parameters = std::max(parameters, it->second + 1);
    }
  }
  int64_t steps = 2;
  if (module.schedule.asynchronous()) {
    steps = 1;
    for (const Action& action : module.schedule.ranks[rank]) steps = std::max<int64_t>(steps, action.lag + 1);
  }
  return steps * options.step_bytes(rank, module.schedule.shape.microbatches, parameters, inputs);
}

// All ranks together get as much as takes a few seconds at most.
PlacementEffort EffortOf(int rank, int ranks, const CompileOptions& options, int64_t workspace) {
  constexpr int64_t kSteps = 16'000'000;
  PlacementEffort effort{.items = std::clamp(32768 / ranks, 1024, 8192),
                         .steps = ranks > 16 ? 0 : kSteps / ranks};
  if (options.draft_memory)
    effort.draft_limit = std::max<int64_t>(0, MemoryLimits(options.cluster)[rank] - workspace);
  return effort;
}

// Plans a rank of a schedule with a flush. Adds what its stages keep in flight to `kept`.
absl::Status PlanList(const Module& module, int rank, const PlacementEffort& effort,
                      const std::vector<Storage>& storages,
                      const absl::flat_hash_set<const Node*>& of_weights, std::vector<KeptBytes>& kept,
                      RankMemory& memory) {
  const int microbatches = module.schedule.shape.microbatches;
  const bool training = module.mode == Mode::kTrain, late = !ValidateAt(module).empty();
  const absl::Span<const SimulatedAction> simulated = module.simulation.ranks[rank];
  const RankTimeline train(memory.programs, module.schedule.ranks[rank], simulated, microbatches);
  const RankTimeline eval(memory.programs, module.eval_schedule.ranks[rank],
                          training ? absl::Span<const SimulatedAction>() : simulated, microbatches);
  PassingBuffers passing{.microbatches = microbatches};
  std::map<std::set<ActionOf>, int> groups;
  std::vector<int> with_versions;
  int64_t below = 0;
  for (const Storage& storage : storages) {
    const int k = static_cast<int>(memory.buffers.size());
    Buffer buffer{storage.named->name(), KindOf(storage, memory.programs), storage.bytes};
    const bool of_step = IsOfStep(storage, memory.programs);
    if (!storage.keeps && of_step && !(late && !storage.local())) {
      passing.of_step.push_back({k, train.OfStep(storage)});
    } else if (!storage.keeps && !of_step && (storage.local() || !IsMadeOfWeights(storage, of_weights))) {
      const std::set<ActionOf> actions = ActionsOf(storage, memory.programs);
      const int group = groups.try_emplace(actions, static_cast<int>(groups.size())).first->second;
      PassingBuffer& own = passing.of_microbatches.emplace_back(PassingBuffer{k, group});
      if (training) own.train = train.OfMicrobatches(storage);
      own.eval = eval.OfMicrobatches(storage);
      if (!storage.local()) AddKept(actions, buffer.aligned_bytes(), kept);
    } else {
      if (late && (Learns(storage) || IsState(storage))) {
        with_versions.push_back(k);
        buffer.offsets.push_back(below + buffer.aligned_bytes());
      }
      buffer.offsets[0] = below;
      below += buffer.slots() * buffer.aligned_bytes();
      memory.peaks[static_cast<int>(buffer.kind)] += buffer.slots() * buffer.aligned_bytes();
    }
    for (const Value* value : storage.values) memory.locations[value] = {k, 0};
    memory.buffers.push_back(std::move(buffer));
  }
  RETURN_IF_ERROR(PlaceMicrobatches(passing, below, effort, memory));
  if (!with_versions.empty()) {
    for (const int k : with_versions)
      memory.buffers[k].slot_class = static_cast<int>(memory.slot_classes.size());
    memory.slot_classes.push_back({.slots = 2, .rule = SlotRule::kVersion});
  }
  return absl::OkStatus();
}

absl::StatusOr<RankMemory> PlanRank(const Module& module, int rank, const CompileOptions& options,
                                    RankPrograms programs, const absl::flat_hash_set<const Node*>& of_weights,
                                    std::vector<KeptBytes>& kept) {
  const std::vector<Storage> storages = BuildStorages(module, rank, programs);
  RankMemory memory;
  memory.programs = std::move(programs.programs);
  memory.workspace_bytes = WorkspaceBytes(memory, rank, options) + StepBytes(module, rank, storages, options);
  if (module.schedule.asynchronous()) {
    RETURN_IF_ERROR(PlanRounds(module, rank, storages, of_weights, memory));
  } else {
    const PlacementEffort effort =
        EffortOf(rank, module.schedule.shape.ranks, options, memory.workspace_bytes);
    RETURN_IF_ERROR(PlanList(module, rank, effort, storages, of_weights, kept, memory));
  }
  return memory;
}

absl::Status PlanRanks(Module& module, const CompileOptions& options) {
  module.memory.clear();
  std::vector<RankPrograms> ranks = BuildPrograms(module);
  const absl::flat_hash_set<const Node*> of_weights = NodesOfWeights(module.graph);
  std::vector<KeptBytes> kept(module.stages.size());
  for (int r = 0; r < ranks.size(); ++r) {
    ASSIGN_OR_RETURN(RankMemory memory, PlanRank(module, r, options, std::move(ranks[r]), of_weights, kept));
    RETURN_IF_ERROR(CheckInPlace(memory));
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
