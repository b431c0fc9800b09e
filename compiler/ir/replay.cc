#include "compiler/ir/replay.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/arena_contents.h"
#include "compiler/ir/once_a_step.h"
#include "compiler/ir/validate_at.h"
#include "compiler/schedule/rounds.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// When an action runs.
struct Moment {
  int step = 0;
  int microbatch = -1;  // -1: once a step
  int read_version = 0, written_version = 0;
};

// What an instruction or message does with one value, worked out once for all microbatches.
struct Access {
  const Value* value = nullptr;
  const std::vector<int64_t>* offsets = nullptr;  // of the buffer, by slot
  int64_t place = 0, bytes = 0;                   // within the slot
  const SlotClass* slots = nullptr;  // null: the same place for all
  bool feed = false;                        // an input of the model, there when the first action that reads it begins
  bool keeps = false;                       // its contents are the buffer's, whatever the microbatch
  bool once = false;                        // made in the first microbatch, for all
  bool accumulator = false;                 // its contents before the first microbatch are nobody's
  bool may_write = true;
  Contents contents{nullptr, -1, -1};  // what has to be there; the number is the moment's
};

struct Instruction {
  const Node* node;
  bool once = false;
  std::vector<Access> reads, writes;
};

class Machine {
 public:
  Machine(const Module& module, int rank, bool training)
      : module_(module), memory_(module.memory[rank]), rank_(rank), training_(training) {
    may_redo_ = training && !ValidateAt(module).empty();
    for (const Program& program : memory_.programs)
      instructions_.insert(program.nodes.begin(), program.nodes.end());
    for (const auto& [value, location] : memory_.locations) {
      if (value->kind() != ValueKind::kResult && value->kind() != ValueKind::kInput)
        Write(AccessTo(value), {});
    }
    for (const Program& program : memory_.programs) {
      std::vector<Instruction>& instructions = programs_[{program.kind, program.stage}];
      for (const Node* node : program.nodes) instructions.push_back(Prepare(*node));
    }
    for (const Message& message : module.messages) {
      for (const Value* value : Ends(message, true)) sends_[&message].push_back(AccessTo(value));
      for (const Value* value : Ends(message, false)) receives_[&message].push_back(AccessTo(value));
    }
  }

  // `step` as the action says for itself; `action.microbatch` within its step.
  absl::Status Run(const Action& action, int step) {
    now_ = {step, action.microbatch, step, step + 1};
    if (action.kind != ActionKind::kUpdate) {
      now_.read_version = now_.written_version = std::max(0, step - WeightDelay());
    }
    if (IsMessage(action.kind)) return RunMessage(action);
    if (action.kind == ActionKind::kReduceGrad) return AddUp(action);
    if (action.kind == ActionKind::kReduceTied) return Exchange(MessageKind::kTied, action);
    const int stage = action.kind == ActionKind::kNorm ? StagesOfRank(module_, rank_).front() : action.stage;
    auto program = programs_.find({action.kind, stage});
    if (program == programs_.end())
      return absl::InternalError(absl::StrCat("action ", ToString(action), " has no program"));
    for (const Instruction& instruction : program->second) {
      for (const Access& read : instruction.reads) Feed(read);
    }
    for (const Instruction& instruction : program->second) {
      if (!instruction.once || action.microbatch <= 0) RETURN_IF_ERROR(RunNode(instruction, action));
    }
    if (action.kind == ActionKind::kF && module_.mode == Mode::kInfer) return ReadOutputs(action);
    return action.kind == ActionKind::kNorm ? Exchange(MessageKind::kNorm, action) : absl::OkStatus();
  }

  // Actions that may have run before: their inputs are fed again, and they write nothing that stays.
  absl::Status RunAgain(absl::Span<const Action> actions, int step) {
    fed_.clear();
    repeats_ = true;
    for (const Action& action : actions) RETURN_IF_ERROR(Run(action, step));
    repeats_ = false;
    return absl::OkStatus();
  }

  // The update's scale alone.
  absl::Status RunScale(int step) {
    now_ = {step, -1, step, step};
    for (const auto& [key, program] : programs_) {
      for (const Instruction& instruction : program) {
        if (instruction.node->Is("GradientScale", kPipecDomain))
          RETURN_IF_ERROR(RunNode(instruction, {ActionKind::kUpdate, key.second}));
      }
    }
    return absl::OkStatus();
  }

  // After so many steps: what stays for the next is there, and what the driver reads.
  absl::Status CheckEnd(int steps) {
    now_ = {steps - 1, -1, training_ ? steps : 0, 0};
    const Action end{training_ ? ActionKind::kUpdate : ActionKind::kF};
    for (const auto& [value, location] : memory_.locations) {
      if (value->kind() != ValueKind::kResult && value->kind() != ValueKind::kInput &&
          value->kind() != ValueKind::kAccumulator)
        RETURN_IF_ERROR(Read(AccessTo(value), end));
    }
    if (!training_) {
      const Training& sums = module_.training;
      for (const Value* value : {sums.loss_sum, sums.loss_weight, sums.correct, sums.predictions}) {
        if (value && memory_.locations.contains(value)) RETURN_IF_ERROR(Read(AccessTo(value), end));
      }
      return absl::OkStatus();
    }
    for (const Node* scale : module_.training.gradient_scales) {
      if (module_.stages[scale->stage].rank != rank_) continue;
      for (const Value* value : scale->outputs()) RETURN_IF_ERROR(Read(AccessTo(value), end));
    }
    return absl::OkStatus();
  }

 private:
  int WeightDelay() const {
    return training_ && module_.schedule.asynchronous() ? module_.schedule.weight_delay[rank_] : 0;
  }
  const Location& Place(const Value* value) const { return memory_.locations.find(value)->second; }

  bool Keeps(const Value* value) const {
    const BufferKind kind = memory_.buffers[Place(value).buffer].kind;
    return kind == BufferKind::kParameter || kind == BufferKind::kGradient ||
           kind == BufferKind::kOptimizerState || kind == BufferKind::kConstant;
  }

  // Through views, which no program lists, and messages within the rank.
  const Value* Source(const Value* value) const {
    while (const Node* node = value->producer()) {
      if (instructions_.contains(node)) break;
      if (node->Is("Message", kPipecDomain)) {
        const Value* operand = node->input(value->output_index());
        if (module_.stages[operand->producer()->stage].rank != rank_) break;
        value = operand;
      } else {
        value = node->input(0);
      }
    }
    return value;
  }

  Access AccessTo(const Value* value) const {
    const Location& place = Place(value);
    const Buffer& buffer = memory_.buffers[place.buffer];
    Access access{value, &buffer.offsets, place.offset, value->type.bytes()};
    if (buffer.slot_class >= 0) access.slots = &memory_.slot_classes[buffer.slot_class];
    access.once = IsOnceAStep(memory_, buffer);
    access.accumulator = value->kind() == ValueKind::kAccumulator;
    const Value* source = Source(value);
    access.keeps = Keeps(source);
    access.feed = !access.keeps && source->kind() == ValueKind::kInput;
    access.contents = access.keeps ? Contents{nullptr, Place(source).buffer, -1} : Contents{source, -1, -1};
    return access;
  }

  Instruction Prepare(const Node& node) const {
    Instruction instruction{&node, RunsOnceAStep(memory_, node)};
    for (const Value* value : node.inputs()) {
      if (value) instruction.reads.push_back(AccessTo(value));
    }
    for (const Value* value : node.outputs()) {
      if (!value) continue;
      Access& access = instruction.writes.emplace_back(AccessTo(value));
      if (!access.keeps) continue;
      const int buffer = Place(value).buffer;
      access.may_write = memory_.buffers[buffer].kind != BufferKind::kConstant &&
                         std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Value* input) {
                           return input && Place(input).buffer == buffer;
                         });
    }
    return instruction;
  }

  int SlotOf(const SlotClass& slot_class, const Moment& moment, int version) const {
    switch (slot_class.rule) {
      case SlotRule::kVersion:
        return training_ ? version % slot_class.slots : 0;
      case SlotRule::kStep:
        return training_ ? moment.step % slot_class.slots : 0;
      case SlotRule::kCycle:
        if (!training_) break;
        return (moment.step * module_.schedule.shape.microbatches + std::max(0, moment.microbatch)) % slot_class.slots;
      case SlotRule::kTable:
        break;
    }
    const std::vector<int>& entries = training_ ? slot_class.train : slot_class.eval;
    return moment.microbatch >= 0 ? entries[moment.microbatch] : 0;
  }

  int64_t Address(const Access& access, const Moment& moment, int version) const {
    return (*access.offsets)[access.slots ? SlotOf(*access.slots, moment, version) : 0] + access.place;
  }

  Contents Wanted(const Access& access, const Moment& moment, int version) const {
    const SlotRule rule = access.slots ? access.slots->rule : SlotRule::kTable;
    int number = -1;
    if (rule == SlotRule::kVersion) {
      number = version;
    } else if (rule == SlotRule::kStep) {
      number = -1 - moment.step;
    } else if (!access.keeps && !access.once) {
      number = moment.microbatch < 0 ? -1 - moment.step
                                     : moment.step * module_.schedule.shape.microbatches + moment.microbatch;
    }
    return {access.contents.value, access.contents.buffer, number};
  }

  void Write(const Access& access, const Moment& moment) {
    arena_.Write(Address(access, moment, moment.written_version), access.bytes,
                 Wanted(access, moment, moment.written_version));
  }

  void Feed(const Access& access) {
    if (access.feed && fed_.insert({access.contents.value, Wanted(access, now_, 0).number}).second)
      Write(AccessTo(access.contents.value), now_);
  }

  absl::Status Read(const Access& access, const Action& action, const Node* node = nullptr) {
    if (access.bytes == 0 || (access.accumulator && now_.microbatch == 0)) return absl::OkStatus();
    Feed(access);
    const int64_t address = Address(access, now_, now_.read_version);
    const Contents* contents = arena_.Find(address, access.bytes);
    if (contents && *contents == Wanted(access, now_, now_.read_version)) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat(node ? node->name() : "the message", " in ", ToString(action), " of step ", now_.step, " reads ",
                     access.value->name(), " at ", address, ", where ",
                     !contents            ? "something else"
                     : !contents->value   ? absl::StrCat("that of another time (", contents->number, ")")
                                          : absl::StrCat(contents->value->name(), " (", contents->number, ")"),
                     " lies"));
  }

  // The model's outputs that the driver takes behind a forward pass.
  absl::Status ReadOutputs(const Action& action) {
    for (const Value* value : module_.graph.outputs) {
      if (value->producer() && value->producer()->stage == action.stage) RETURN_IF_ERROR(Read(AccessTo(value), action));
    }
    return absl::OkStatus();
  }

  absl::Status RunNode(const Instruction& instruction, const Action& action) {
    for (const Access& read : instruction.reads)
      RETURN_IF_ERROR(Read(read, action, instruction.node));
    for (const Access& write : instruction.writes) {
      const bool versions = write.slots && write.slots->rule == SlotRule::kVersion;
      const bool spoils = write.keeps && (repeats_ || (may_redo_ && action.kind == ActionKind::kUpdate && !versions));
      if (!write.may_write || spoils) {
        return absl::InternalError(absl::StrCat(instruction.node->name(), " in ", ToString(action),
                                                " writes over ", write.value->name()));
      }
      Write(write, now_);
    }
    return absl::OkStatus();
  }

  // The operands of a message that this rank sends, or the results of one that it receives; else nothing.
  absl::Span<Value* const> Ends(const Message& message, bool sends) const {
    const int stage = sends ? message.from_stage : message.to_stage;
    if (module_.stages[stage].rank != rank_) return {};
    return sends ? message.node->inputs() : message.node->outputs();
  }

  bool Crosses(const Message& message) const {
    return module_.stages[message.from_stage].rank != module_.stages[message.to_stage].rank;
  }

  absl::Status RunMessage(const Action& action) {
    const bool sends = action.kind == ActionKind::kSendF || action.kind == ActionKind::kSendB;
    const bool forward = action.kind == ActionKind::kSendF || action.kind == ActionKind::kRecvF;
    const int from = sends ? action.stage : action.peer_stage, to = sends ? action.peer_stage : action.stage;
    for (const Message& message : module_.messages) {
      if (message.kind != (forward ? MessageKind::kActivation : MessageKind::kGradient) ||
          message.from_stage != from || message.to_stage != to) {
        continue;
      }
      return Transfer(message, sends, action);
    }
    return absl::InternalError(absl::StrCat("action ", ToString(action), " has no message"));
  }

  // All at once: what comes may be there before anything has gone.
  absl::Status Exchange(MessageKind kind, const Action& action) {
    for (const bool sends : {false, true}) {
      for (const Message& message : module_.messages) {
        const int stage = sends ? message.from_stage : message.to_stage;
        if (message.kind != kind || !Crosses(message) || module_.stages[stage].rank != rank_) continue;
        RETURN_IF_ERROR(Transfer(message, sends, action));
      }
    }
    return absl::OkStatus();
  }

  // In place: what was there is read, and the sum lies where it was.
  absl::Status AddUp(const Action& action) {
    for (const Value* value : SummedOverReplicas(module_, action.stage)) {
      const Access sum = AccessTo(value);
      RETURN_IF_ERROR(Read(sum, action));
      Write(sum, now_);
    }
    return absl::OkStatus();
  }

  absl::Status Transfer(const Message& message, bool sends, const Action& action) {
    if (sends) {
      for (const Access& read : sends_[&message]) RETURN_IF_ERROR(Read(read, action));
    } else {
      for (const Access& write : receives_[&message]) {
        if (write.keeps)
          return absl::InternalError(
              absl::StrCat("the message in ", ToString(action), " writes over ", write.value->name()));
        Write(write, now_);
      }
    }
    return absl::OkStatus();
  }

  const Module& module_;
  const RankMemory& memory_;
  const int rank_;
  const bool training_;
  Moment now_;
  bool repeats_ = false;  // what runs now may have run before
  bool may_redo_ = false;  // updates may have to be made again, from what they read
  ArenaContents arena_;
  absl::flat_hash_set<const Node*> instructions_;
  std::map<std::pair<ActionKind, int>, std::vector<Instruction>> programs_;  // by kind and stage
  absl::flat_hash_map<const Message*, std::vector<Access>> sends_, receives_;
  absl::flat_hash_set<std::pair<const Value*, int>> fed_;
};

// Two steps, of which the first is validated when the second has begun. `right`: whether the update was; else it is
// made again.
absl::Status ReplayLate(const Module& module, int rank, const Schedule& schedule, int validate_at, bool right) {
  Machine machine(module, rank, /*training=*/true);
  const std::vector<Action>& list = schedule.ranks[rank];
  const absl::Span<const Action> begin = absl::MakeSpan(list).first(validate_at);
  for (const Action& action : list) RETURN_IF_ERROR(machine.Run(action, 0));
  RETURN_IF_ERROR(machine.RunAgain(begin, 1));
  RETURN_IF_ERROR(machine.RunScale(0));
  if (!right) {
    for (const Action& action : list) {
      if (action.kind == ActionKind::kUpdate) RETURN_IF_ERROR(machine.Run(action, 0));
    }
    RETURN_IF_ERROR(machine.RunAgain(begin, 1));
  }
  for (size_t k = begin.size(); k < list.size(); ++k) RETURN_IF_ERROR(machine.Run(list[k], 1));
  return machine.CheckEnd(2);
}

}  // namespace

absl::Status Replay(const Module& module, int rank, const Schedule& schedule, bool training) {
  if (const std::vector<int> validate_at = ValidateAt(module); training && !validate_at.empty()) {
    RETURN_IF_ERROR(ReplayLate(module, rank, schedule, validate_at[rank], true));
    return ReplayLate(module, rank, schedule, validate_at[rank], false);
  }
  Machine machine(module, rank, training);
  const std::vector<Action>& list = schedule.ranks[rank];
  if (!schedule.asynchronous()) {
    for (const Action& action : list) RETURN_IF_ERROR(machine.Run(action, 0));
    return machine.CheckEnd(1);
  }
  // Enough for every slot to be used again.
  const int steps = 2 * LargestLag(schedule) + 4;
  const Unrolled unrolled = Unroll(schedule, steps);
  for (const RoundPlace& place : unrolled.places[rank]) RETURN_IF_ERROR(machine.Run(list[place.index], place.step));
  return machine.CheckEnd(steps);
}

}  // namespace pipec
