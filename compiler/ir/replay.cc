#include "compiler/ir/replay.h"

#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// What lies in some bytes: a value of a microbatch (-1: once a step).
struct Contents {
  const Value* value;
  int microbatch;
  bool operator==(const Contents&) const = default;
};

class Arena {
 public:
  void Write(int64_t begin, int64_t bytes, Contents contents) {
    if (bytes == 0) return;
    auto it = pieces_.upper_bound(begin);
    if (it != pieces_.begin() && std::prev(it)->second.end > begin) --it;
    while (it != pieces_.end() && it->first < begin + bytes) it = pieces_.erase(it);
    pieces_.emplace_hint(it, begin, Piece{begin + bytes, contents});
  }
  // Null if no one wrote exactly these bytes, or somebody wrote over some of them.
  const Contents* Find(int64_t begin, int64_t bytes) const {
    auto it = pieces_.find(begin);
    return it != pieces_.end() && it->second.end == begin + bytes ? &it->second.contents : nullptr;
  }

 private:
  struct Piece {
    int64_t end;
    Contents contents;
  };
  std::map<int64_t, Piece> pieces_;
};

class Machine {
 public:
  Machine(const Module& module, int rank, bool training)
      : module_(module), memory_(module.memory[rank]), rank_(rank), training_(training) {
    for (const Program& program : memory_.programs)
      instructions_.insert(program.nodes.begin(), program.nodes.end());
    for (const auto& [value, location] : memory_.locations) {
      if (value->kind() != ValueKind::kResult && value->kind() != ValueKind::kInput) Write(value, -1);
    }
  }

  absl::Status Run(const Action& action) {
    if (IsMessage(action.kind)) return RunMessage(action);
    if (action.kind == ActionKind::kReduceTied) return Exchange(MessageKind::kTied, action);
    const int stage = action.kind == ActionKind::kNorm ? StagesOfRank(module_, rank_).front() : action.stage;
    for (const Program& program : memory_.programs) {
      if (program.kind != action.kind || program.stage != stage) continue;
      for (const Node* node : program.nodes) RETURN_IF_ERROR(RunNode(*node, action));
      return action.kind == ActionKind::kNorm ? Exchange(MessageKind::kNorm, action) : absl::OkStatus();
    }
    return absl::InternalError(absl::StrCat("action ", ToString(action), " has no program"));
  }

  // What the driver reads after the last action.
  absl::Status CheckEnd() {
    if (!training_) return absl::OkStatus();
    for (const Node* scale : module_.training.gradient_scales) {
      if (module_.stages[scale->stage].rank != rank_) continue;
      for (const Value* value : scale->outputs()) RETURN_IF_ERROR(Read(value, -1, {ActionKind::kNorm}));
    }
    return absl::OkStatus();
  }

 private:
  const Location& Place(const Value* value) const { return memory_.locations.find(value)->second; }

  int64_t Address(const Value* value, int microbatch) const {
    const Location& place = Place(value);
    const Buffer& buffer = memory_.buffers[place.buffer];
    int slot = 0;
    if (buffer.slot_class >= 0 && microbatch >= 0) {
      const SlotClass& slot_class = memory_.slot_classes[buffer.slot_class];
      slot = (training_ ? slot_class.train : slot_class.eval)[microbatch];
    }
    return buffer.offset + slot * buffer.stride() + place.offset;
  }

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

  Contents Wanted(const Value* value, int microbatch) const {
    if (Keeps(value)) return {nullptr, Place(value).buffer};
    return {Source(value), microbatch};
  }

  void Write(const Value* value, int microbatch) {
    arena_.Write(Address(value, microbatch), value->type.bytes(), Wanted(value, microbatch));
  }

  absl::Status Read(const Value* value, int microbatch, const Action& action, const Node* node = nullptr) {
    if (value->type.bytes() == 0) return absl::OkStatus();
    const Value* source = Source(value);
    if (source->kind() == ValueKind::kInput && fed_.insert({source, microbatch}).second)
      Write(source, microbatch);
    const Contents* contents = arena_.Find(Address(value, microbatch), value->type.bytes());
    if (contents && *contents == Wanted(value, microbatch)) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat(node ? node->name() : "the message", " in ", ToString(action), " reads ", value->name(),
                     " of microbatch ", microbatch, " at ", Address(value, microbatch), ", where ",
                     contents && contents->value ? contents->value->name() : "something else", " lies"));
  }

  absl::Status RunNode(const Node& node, const Action& action) {
    const int microbatch = action.microbatch;
    for (const Value* value : node.inputs()) {
      if (value) RETURN_IF_ERROR(Read(value, microbatch, action, &node));
    }
    for (const Value* value : node.outputs()) {
      if (!value) continue;
      if (Keeps(value)) {
        bool updates = memory_.buffers[Place(value).buffer].kind != BufferKind::kConstant;
        bool reads_it = false;
        for (const Value* input : node.inputs())
          reads_it |= input && Place(input).buffer == Place(value).buffer;
        updates &= reads_it;
        if (!updates)
          return absl::InternalError(
              absl::StrCat(node.name(), " in ", ToString(action), " writes over ", value->name()));
      }
      Write(value, microbatch);
    }
    return absl::OkStatus();
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

  absl::Status Exchange(MessageKind kind, const Action& action) {
    for (const bool sends : {true, false}) {
      for (const Message& message : module_.messages) {
        const int stage = sends ? message.from_stage : message.to_stage;
        if (message.kind != kind || !Crosses(message) || module_.stages[stage].rank != rank_) continue;
        RETURN_IF_ERROR(Transfer(message, sends, action));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Transfer(const Message& message, bool sends, const Action& action) {
    for (int k = 0; k < message.node->inputs().size(); ++k) {
      if (sends) {
        RETURN_IF_ERROR(Read(message.node->input(k), action.microbatch, action));
      } else {
        Write(message.node->output(k), action.microbatch);
      }
    }
    return absl::OkStatus();
  }

  const Module& module_;
  const RankMemory& memory_;
  const int rank_;
  const bool training_;
  Arena arena_;
  absl::flat_hash_set<const Node*> instructions_;
  absl::flat_hash_set<std::pair<const Value*, int>> fed_;
};

}  // namespace

absl::Status Replay(const Module& module, int rank, const std::vector<Action>& actions, bool training) {
  Machine machine(module, rank, training);
  for (const Action& action : actions) RETURN_IF_ERROR(machine.Run(action));
  return machine.CheckEnd();
}

}  // namespace pipec
