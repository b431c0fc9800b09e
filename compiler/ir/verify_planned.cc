// Level planned. Refuses:
//  - a slot that is misaligned or outside the arena, a slot that its buffer has not, a class without an entry
//  per microbatch
//  - a value that an instruction or message touches and that has no place, or one outside its buffer
//  - an action without program
//  - two live buffers that overlap: every rank's training and evaluation list is replayed on a model of the
//  arena that
//    remembers which value of which microbatch lies where (replay.h); an operand that is no longer what was
//    written, or never was, is refused
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/replay.h"
#include "compiler/ir/validate_at.h"
#include "compiler/ir/verify.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status CheckBuffers(const Module& module, const RankMemory& memory) {
  const int microbatches = module.schedule.shape.microbatches;
  const int train_entries = module.mode == Mode::kTrain ? microbatches : 0;
  for (const SlotClass& slot_class : memory.slot_classes) {
    const bool by_microbatch = slot_class.rule == SlotRule::kTable || slot_class.rule == SlotRule::kCycle;
    const bool asynchronous = module.schedule.asynchronous() && module.mode == Mode::kTrain;
    const bool ahead = !ValidateAt(module).empty() && slot_class.rule == SlotRule::kVersion;
    if (asynchronous == (slot_class.rule == SlotRule::kTable) && !ahead)
      return absl::InternalError("a slot class of a wrong rule");
    if (slot_class.train.size() != (slot_class.rule == SlotRule::kTable ? train_entries : 0) ||
        slot_class.eval.size() != (by_microbatch ? microbatches : 0)) {
      return absl::InternalError("a slot class without one entry per microbatch");
    }
    for (const std::vector<int>* entries : {&slot_class.train, &slot_class.eval}) {
      for (int slot : *entries) {
        if (slot < 0 || slot >= slot_class.slots) {
          return absl::InternalError(absl::StrCat("slot ", slot, " of a class with ", slot_class.slots));
        }
      }
    }
  }
  for (const Buffer& buffer : memory.buffers) {
    const std::string what = absl::StrCat("buffer ", buffer.name, " ");
    if (buffer.slot_class < -1 || buffer.slot_class >= static_cast<int>(memory.slot_classes.size())) {
      return absl::InternalError(absl::StrCat(what, "names a slot class that is not there"));
    }
    const int slots = buffer.slot_class < 0 ? 1 : memory.slot_classes[buffer.slot_class].slots;
    if (buffer.slots() != slots)
      return absl::InternalError(absl::StrCat(what, "has other slots than its class"));
    for (const int64_t offset : buffer.offsets) {
      if (buffer.bytes < 0 || offset < 0 || offset % 64 != 0 ||
          offset + buffer.aligned_bytes() > memory.arena_bytes) {
        return absl::InternalError(
            absl::StrCat(what, "lies at ", offset, " in an arena of ", memory.arena_bytes));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLocation(const RankMemory& memory, const Value* value) {
  if (!value) return absl::OkStatus();
  auto it = memory.locations.find(value);
  if (it == memory.locations.end())
    return absl::InternalError(absl::StrCat("value ", value->name(), " has no place"));
  const auto [buffer, offset] = it->second;
  if (buffer < 0 || buffer >= memory.buffers.size() || offset < 0 ||
      offset + value->type.bytes() > memory.buffers[buffer].bytes) {
    return absl::InternalError(absl::StrCat("value ", value->name(), " lies outside its buffer"));
  }
  if (value->kind() == ValueKind::kInput && memory.buffers[buffer].kind != BufferKind::kInput)
    return absl::InternalError(absl::StrCat("input ", value->name(), " lies in a buffer of another kind"));
  return absl::OkStatus();
}

absl::Status CheckLocations(const Module& module, int rank) {
  const RankMemory& memory = module.memory[rank];
  for (const Program& program : memory.programs) {
    for (const Node* node : program.nodes) {
      for (const Value* value : node->inputs()) RETURN_IF_ERROR(CheckLocation(memory, value));
      for (const Value* value : node->outputs()) RETURN_IF_ERROR(CheckLocation(memory, value));
    }
  }
  for (const Message& message : module.messages) {
    const bool sends = module.stages[message.from_stage].rank == rank;
    const bool receives = module.stages[message.to_stage].rank == rank;
    for (int k = 0; k < message.node->inputs().size(); ++k) {
      if (sends) RETURN_IF_ERROR(CheckLocation(memory, message.node->input(k)));
      if (receives) RETURN_IF_ERROR(CheckLocation(memory, message.node->output(k)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyPlanned(const Module& module) {
  if (module.memory.size() != module.schedule.ranks.size())
    return absl::InternalError("not every rank has a memory plan");
  for (int r = 0; r < module.memory.size(); ++r) {
    absl::Status status = CheckBuffers(module, module.memory[r]);
    if (status.ok()) status = CheckLocations(module, r);
    if (status.ok() && module.mode == Mode::kTrain)
      status = Replay(module, r, module.schedule, /*training=*/true);
    if (status.ok()) status = Replay(module, r, module.eval_schedule, /*training=*/false);
    if (!status.ok()) return absl::InternalError(absl::StrCat("rank ", r, ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace pipec
