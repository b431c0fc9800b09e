// A second opinion on the memory of a planned module, from lifetimes where the verifier replays contents.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/ops/op_info.h"

namespace pipec {

// What is written at one moment and read at a later one lives in between, and nobody else may write to its bytes then.
// Instruction k reads at 2k, or at 2k+1 what its result may not lie on, and writes at 2k+1; what an action needs of the
// samples is written before its first instruction.
class Lifetimes {
 public:
  Lifetimes(const Module& module, int rank, bool training)
      : module_(module), memory_(module.memory[rank]), rank_(rank), training_(training) {
    for (const Program& program : memory_.programs) nodes_.insert(program.nodes.begin(), program.nodes.end());
  }

  bool Sound() {
    for (const Action& action : (training_ ? module_.schedule : module_.eval_schedule).ranks[rank_])
      Run(action);
    for (const auto& [value, location] : memory_.locations) {
      if (Stays(*value)) Read(value, -1, kEnd);
    }
    const Training& training = module_.training;
    std::vector<const Value*> wanted = {training.loss_sum, training.loss_weight, training.correct,
                                        training.predictions};
    if (training_) {
      wanted.clear();
      for (const Node* scale : training.gradient_scales)
        wanted.insert(wanted.end(), scale->outputs().begin(), scale->outputs().end());
    }
    for (const Value* value : wanted) {
      if (value && memory_.locations.contains(value)) Read(value, -1, kEnd);
    }
    for (const Write& write : writes_) {
      for (const auto& [key, life] : lives_) {
        const bool meets = write.begin < life.end && life.begin < write.end;
        if (!meets || key == write.key) continue;
        if ((life.written < write.time && write.time <= life.read) || life.written == write.time)
          return false;
      }
    }
    return sound_;
  }

 private:
  static constexpr int64_t kBefore = -1, kEnd = std::numeric_limits<int64_t>::max();
  using Key = std::pair<const void*, int>;  // a value and its microbatch, or a buffer that keeps its contents
  struct Life {
    int64_t begin, end;     // bytes
    int64_t written, read;  // times
  };
  struct Write {
    Key key;
    int64_t begin, end, time;
  };

  static bool Stays(const Value& value) {
    return value.kind() == ValueKind::kParameter || value.kind() == ValueKind::kConstant ||
           value.kind() == ValueKind::kState;
  }
  const Buffer& BufferOf(const Value* value) const {
    return memory_.buffers[memory_.locations.at(value).buffer];
  }
  bool Keeps(const Value* value) const {
    const BufferKind kind = BufferOf(value).kind;
    return kind == BufferKind::kParameter || kind == BufferKind::kGradient ||
           kind == BufferKind::kOptimizerState || kind == BufferKind::kConstant;
  }
  // Whose contents a view, or a message within the rank, has.
  const Value* Source(const Value* value) const {
    const Node* node = value->producer();
    if (!node || nodes_.contains(node)) return value;
    if (!node->Is("Message", kPipecDomain)) return Source(node->input(0));
    const Value* operand = node->input(value->output_index());
    return module_.stages[operand->producer()->stage].rank == rank_ ? Source(operand) : value;
  }
  Key KeyOf(const Value* value, int microbatch) const {
    const Value* source = Source(value);
    if (Keeps(source)) return {&BufferOf(source), -1};
    return {source, microbatch};
  }
  int64_t Begin(const Value* value, int microbatch) const {
    const Buffer& buffer = BufferOf(value);
    int slot = 0;
    if (buffer.slot_class >= 0 && microbatch >= 0) {
      const SlotClass& slots = memory_.slot_classes[buffer.slot_class];
      slot = (training_ ? slots.train : slots.eval)[microbatch];
    }
    return buffer.offsets[slot] + memory_.locations.at(value).offset;
  }

  void WriteAt(const Value* value, int microbatch, int64_t time) {
    if (value->type.bytes() == 0) return;
    const Key key = KeyOf(value, microbatch);
    const int64_t begin = Begin(value, microbatch), end = begin + value->type.bytes();
    writes_.push_back({key, begin, end, time});
    const auto [life, added] = lives_.try_emplace(key, Life{begin, end, time, time});
    sound_ &= added || (Keeps(value) && life->second.begin == begin && life->second.end == end);
  }

  void Read(const Value* value, int microbatch, int64_t time) {
    if (value->type.bytes() == 0) return;
    if (value->kind() == ValueKind::kAccumulator && microbatch == 0) return;  // begins from nothing
    if (Stays(*value) && !lives_.contains(KeyOf(value, microbatch))) WriteAt(value, microbatch, kBefore);
    const auto life = lives_.find(KeyOf(value, microbatch));
    const int64_t begin = Begin(value, microbatch);
    if (life == lives_.end() || life->second.begin != begin ||
        life->second.end != begin + value->type.bytes()) {
      sound_ = false;
    } else {
      life->second.read = std::max(life->second.read, time);
    }
  }

  void Run(const Action& action) {
    const bool sends = action.kind == ActionKind::kSendF || action.kind == ActionKind::kSendB;
    if (IsMessage(action.kind)) {
      const int from = sends ? action.stage : action.peer_stage,
                to = sends ? action.peer_stage : action.stage;
      const bool forward = action.kind == ActionKind::kSendF || action.kind == ActionKind::kRecvF;
      Exchange(forward ? MessageKind::kActivation : MessageKind::kGradient, from, to, sends,
               action.microbatch);
      ++now_;
      return;
    }
    if (action.kind != ActionKind::kReduceTied) RunProgram(action);
    if (action.kind == ActionKind::kReduceTied || action.kind == ActionKind::kNorm) {
      for (const bool out : {true, false})
        Exchange(action.kind == ActionKind::kNorm ? MessageKind::kNorm : MessageKind::kTied, -1, -1, out, -1);
    }
    ++now_;
  }

  // Stages -1: all of that kind.
  void Exchange(MessageKind kind, int from, int to, bool sends, int microbatch) {
    for (const Message& message : module_.messages) {
      if (message.kind != kind || (from >= 0 && (message.from_stage != from || message.to_stage != to)))
        continue;
      const int sender = module_.stages[message.from_stage].rank,
                receiver = module_.stages[message.to_stage].rank;
      if (sender == receiver || (sends ? sender : receiver) != rank_) continue;
      if (sends) {
        for (const Value* value : message.node->inputs()) Read(value, microbatch, 2 * now_ + 1);
      } else {
        for (const Value* value : message.node->outputs()) {
          sound_ &= !Keeps(value);
          WriteAt(value, microbatch, 2 * now_);
        }
      }
    }
  }

  void RunProgram(const Action& action) {
    for (const Program& program : memory_.programs) {
      const bool norm = action.kind == ActionKind::kNorm;
      if (program.kind != action.kind || (!norm && program.stage != action.stage)) continue;
      const int64_t before = 2 * now_++;
      for (const Node* node : program.nodes) {
        for (const Value* value : node->inputs()) {
          const bool fed = value && !Keeps(value) && Source(value)->kind() == ValueKind::kInput;
          if (fed && !lives_.contains(KeyOf(value, action.microbatch)))
            WriteAt(Source(value), action.microbatch, before);
        }
      }
      for (const Node* node : program.nodes) RunNode(*node, action.microbatch);
      if (module_.mode != Mode::kInfer) continue;
      for (const Value* value : module_.graph.outputs) {
        if (value->producer() && value->producer()->stage == action.stage)
          Read(value, action.microbatch, 2 * now_);
      }
    }
  }

  void RunNode(const Node& node, int microbatch) {
    const OpInfo* info = FindOp(node.op(), node.domain());
    const Alias alias = info ? info->alias : Alias::kNone;
    const Value* under = alias == Alias::kInPlace ? node.input(info->alias_input) : nullptr;
    const bool in_place = under && Begin(under, microbatch) == Begin(node.output(0), microbatch) &&
                          under->type.bytes() == node.output(0)->type.bytes();
    for (const Value* value : node.inputs()) {
      if (value) Read(value, microbatch, 2 * now_ + (in_place && value == under ? 0 : 1));
    }
    for (size_t k = 0; k < node.outputs().size(); ++k) {
      const Value* result = node.outputs()[k];
      if (!result) continue;
      const Value* kept =
          alias == Alias::kSameMemory ? node.input(AliasInput(node, static_cast<int>(k))) : nullptr;
      const bool updates = kept && &BufferOf(kept) == &BufferOf(result);
      sound_ &= updates == (kept != nullptr) && updates == Keeps(result);
      WriteAt(result, microbatch, 2 * now_ + 1);
    }
    ++now_;
  }

  const Module& module_;
  const RankMemory& memory_;
  const int rank_;
  const bool training_;
  std::set<const Node*> nodes_;
  int64_t now_ = 1;
  bool sound_ = true;
  std::map<Key, Life> lives_;
  std::vector<Write> writes_;
};

}  // namespace pipec
