#include "runtime/plan/verify_actions.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/plan/verify.h"

namespace pipec {
namespace {

using plan::Action;
using plan::RankPlan;

bool IsCompute(plan::ActionKind kind) {
  return kind == plan::F || kind == plan::B || kind == plan::I || kind == plan::W;
}
bool IsMessage(plan::ActionKind kind) { return kind >= plan::SEND_F && kind <= plan::RECV_B; }
bool IsSend(plan::ActionKind kind) { return kind == plan::SEND_F || kind == plan::SEND_B; }

// Everything but the order: fields in range, references to programs and messages of the right kind.
absl::Status CheckFields(const RankPlan& p, const Action& action) {
  auto bad = [&](absl::string_view fault) { return absl::InvalidArgumentError(std::string(fault)); };
  if (!plan::ActionKind_IsValid(action.kind())) return bad("unknown kind");
  const bool exchange = action.kind() == plan::NORM || action.kind() == plan::REDUCE_TIED;
  if (!(exchange && action.stage() == -1) &&
      (action.stage() < 0 || action.stage() >= p.rank_of_stage_size() ||
       p.rank_of_stage(action.stage()) != p.rank())) {
    return bad("its stage is not on this rank");
  }
  const bool per_microbatch = IsCompute(action.kind()) || IsMessage(action.kind());
  if (per_microbatch
          ? action.microbatch() < 0 || action.microbatch() >= static_cast<int64_t>(p.microbatches())
          : action.microbatch() != -1) {
    return bad("microbatch out of range");
  }
  if (action.program() != -1) {
    if (action.program() < 0 || action.program() >= p.programs_size()) return bad("program out of range");
    const plan::Program& program = p.programs(action.program());
    if (program.kind() != action.kind() ||
        (action.stage() != -1 && static_cast<int>(program.stage()) != action.stage())) {
      return bad("its program is another stage's or kind's");
    }
  }
  if (IsMessage(action.kind()) ? action.messages_size() != 1 : !exchange && action.messages_size() != 0) {
    return bad("a wrong number of messages");
  }
  if ((action.kind() == plan::REDUCE_GRAD) != (action.sums_size() > 0) ||
      (action.sums_size() > 0 && p.replicas() == 1))
    return bad("has sums over replicas that it cannot have, or lacks them");
  for (uint32_t tensor : action.sums()) {
    if (tensor >= static_cast<uint32_t>(p.tensors_size())) return bad("sum out of range");
    const plan::Buffer& buffer = p.buffers(p.tensors(tensor).buffer());
    const auto dtype = static_cast<DType>(p.tensors(tensor).dtype());
    if ((dtype != DType::kFloat32 && dtype != DType::kFloat64) || buffer.offsets_size() != 1 ||
        buffer.kind() == plan::CONSTANT)
      return bad("a sum that is no float32 or float64 tensor in one place");
  }
  for (uint32_t index : action.messages()) {
    if (index >= static_cast<uint32_t>(p.messages_size())) return bad("message out of range");
    const plan::Message& message = p.messages(index);
    plan::MessageKind wanted = plan::ACTIVATIONS;
    if (action.kind() == plan::SEND_B || action.kind() == plan::RECV_B) wanted = plan::GRADIENTS;
    if (action.kind() == plan::REDUCE_TIED) wanted = plan::TIED;
    if (action.kind() == plan::NORM) wanted = plan::NORMS;
    if (message.kind() != wanted) return bad("its message is of another kind");
    if (!IsMessage(action.kind())) continue;
    const uint32_t stage = message.sends() ? message.from_stage() : message.to_stage();
    if (message.sends() != IsSend(action.kind()) || static_cast<int>(stage) != action.stage()) {
      return bad("its message goes another way");
    }
  }
  return absl::OkStatus();
}

// How far each (stage, kind) has come: the microbatch that must be next. B is an I and a W at once.
class Progress {
 public:
  int Next(int stage, plan::ActionKind kind) const {
    auto it = next_.find({stage, kind});
    return it == next_.end() ? 0 : it->second;
  }
  void Advance(int stage, plan::ActionKind kind) { ++next_[{stage, kind}]; }

 private:
  std::map<std::pair<int, int>, int> next_;
};

// Whether a step finds the weights that it wants, of a rank that updates some.
class Versions {
 public:
  explicit Versions(const RankPlan& p) : delay_(static_cast<int>(p.weight_delay())) {
    for (const Action& action : p.train()) {
      if (action.kind() == plan::UPDATE) stages_.insert(action.stage());
    }
  }
  bool Found(int stage, int step) const {
    const auto it = updates_.find(stage);
    const int newest = it == updates_.end() ? 0 : it->second, wanted = std::max(0, step - delay_);
    return stages_.count(stage) == 0 || (wanted <= newest && newest - wanted <= delay_);
  }
  // Whether it is the turn of this step.
  bool Update(int stage, int step) { return updates_[stage]++ == step; }

 private:
  const int delay_;
  std::set<int> stages_;        // that have an UPDATE
  std::map<int, int> updates_;  // by stage
};

// With several replicas every gradient, and what else is counted over the batch, is added up over them, once, before
// anybody uses the sum: so the replicas stay equal.
class Sums {
 public:
  explicit Sums(const RankPlan& p) : plan_(p) {
    if (p.replicas() == 1) return;
    for (const int32_t scalar : {p.loss_sum(), p.loss_weight()}) {
      if (scalar >= 0 && scalar < p.tensors_size()) wanted_.insert(p.tensors(scalar).buffer());
    }
    for (const plan::Program& program : p.programs()) {
      if (program.kind() != plan::B && program.kind() != plan::I && program.kind() != plan::W) continue;
      for (const plan::Instruction& instruction : program.instructions()) {
        for (int32_t tensor : instruction.outputs()) {
          if (tensor >= 0 && p.buffers(p.tensors(tensor).buffer()).kind() == plan::GRADIENT)
            wanted_.insert(p.tensors(tensor).buffer());
        }
      }
    }
  }

  absl::Status Add(const Action& action, bool gradients_made) {
    if (over_) return absl::InvalidArgumentError("after what needs the sum");
    if (!gradients_made) return absl::InvalidArgumentError("before the last gradient of its stage");
    for (uint32_t tensor : action.sums()) {
      if (!summed_.insert(plan_.tensors(tensor).buffer()).second)
        return absl::InvalidArgumentError(
            absl::StrCat("'", plan_.tensors(tensor).name(), "' is added up twice"));
    }
    return absl::OkStatus();
  }
  void End() { over_ = true; }
  absl::Status CheckAll() const {
    for (uint32_t buffer : wanted_) {
      if (summed_.count(buffer) == 0)
        return absl::InvalidArgumentError(
            absl::StrCat("'", plan_.buffers(buffer).name(), "' is not added up over the replicas"));
    }
    return absl::OkStatus();
  }

 private:
  const RankPlan& plan_;
  std::set<uint32_t> wanted_, summed_;  // buffers
  bool over_ = false;
};

absl::Status CheckList(const RankPlan& p, const google::protobuf::RepeatedPtrField<Action>& actions,
                       bool training) {
  const bool rounds = training && p.asynchronous();
  const int M = static_cast<int>(p.microbatches());
  Progress progress;
  Versions versions(p);
  Sums sums(p);
  std::set<std::pair<uint32_t, int>> exchanged;  // (message, microbatch of all steps, -1 - step if once a step)
  std::set<std::tuple<int, int, int>> once;      // (stage, kind, step) of what happens once a step
  int64_t most_lag = 0;
  for (const Action& action : actions) most_lag = std::max<int64_t>(most_lag, action.lag());
  if (most_lag > (rounds ? 2 * int64_t{p.ranks()} + 2 : 0) || (2 * most_lag + 4) * actions.size() > 1 << 26)
    return absl::InvalidArgumentError(absl::StrCat("a lag of ", most_lag, " is out of range"));
  const int steps = rounds ? static_cast<int>(most_lag) + 4 : 1;
  for (const ActionRun& run : RunsOf(p, training, steps)) {
    const int i = run.index, step = run.step;
    const Action& action = actions[i];
    auto bad = [&](absl::string_view fault) {
      const bool named = plan::ActionKind_IsValid(action.kind());
      return absl::InvalidArgumentError(absl::StrCat(training ? "train" : "eval", " action ", i,
                                                     named ? absl::StrCat(" ", ActionName(p, action)) : "",
                                                     ": ", fault));
    };
    absl::Status status = CheckFields(p, action);
    if (!status.ok()) return bad(status.message());
    if (!training && action.kind() != plan::F && action.kind() != plan::SEND_F &&
        action.kind() != plan::RECV_F) {
      return bad("evaluation runs forward only");
    }
    const int stage = action.stage();
    const int m = action.microbatch() < 0 ? -1 - step : step * M + action.microbatch();
    if (rounds && IsCompute(action.kind()) && !versions.Found(stage, step))
      return bad(absl::StrCat("in step ", step, " the weight version it reads is not there"));
    if (rounds && action.kind() == plan::UPDATE) {
      if (!versions.Update(stage, step)) return bad("out of the order of steps");
      if (progress.Next(stage, plan::W) < (step + 1) * M) return bad("before the last gradient of its step");
    }
    if (IsCompute(action.kind())) {
      std::vector<plan::ActionKind> rows = {action.kind()};
      if (action.kind() == plan::B) rows = {plan::I, plan::W};
      for (const plan::ActionKind row : rows) {
        if (progress.Next(stage, row) != m) return bad("out of microbatch order, or twice");
        progress.Advance(stage, row);
      }
      const plan::ActionKind before = action.kind() == plan::W ? plan::I : plan::F;
      if (action.kind() != plan::F && progress.Next(stage, before) <= m) {
        return bad(absl::StrCat("before its ", plan::ActionKind_Name(before)));
      }
    } else if (IsMessage(action.kind())) {
      const bool forward = action.kind() == plan::SEND_F || action.kind() == plan::RECV_F;
      const int computed = progress.Next(stage, forward ? plan::F : plan::I);
      if (IsSend(action.kind()) ? computed <= m : computed > m) {
        return bad(IsSend(action.kind()) ? "sent before it is made" : "received after it is used");
      }
    } else if (!once.insert({stage, action.kind(), step}).second) {
      return bad("twice");
    } else if (action.kind() != plan::REDUCE_GRAD) {
      sums.End();
    } else if (status = sums.Add(action, progress.Next(stage, plan::W) == M); !status.ok()) {
      return bad(status.message());
    }
    for (uint32_t message : action.messages()) {
      if (!exchanged.insert({message, m}).second) return bad("its message is exchanged twice");
    }
  }
  if (training) RETURN_IF_ERROR(sums.CheckAll());
  const int microbatches = M * steps;
  for (int stage = 0; stage < p.rank_of_stage_size(); ++stage) {
    if (p.rank_of_stage(stage) != p.rank()) continue;
    auto count = [&](plan::ActionKind kind) { return progress.Next(stage, kind); };
    if (count(plan::F) != microbatches)
      return absl::InvalidArgumentError(absl::StrCat(stage, "F lacks microbatches"));
    if (!training) continue;
    if (count(plan::I) != microbatches || count(plan::W) != microbatches)
      return absl::InvalidArgumentError(absl::StrCat("stage ", stage, ": backward lacks microbatches"));
  }
  for (int k = 0; training && k < p.messages_size(); ++k) {
    const bool once_a_step = p.messages(k).kind() == plan::TIED || p.messages(k).kind() == plan::NORMS;
    for (int m = once_a_step ? -steps : 0; m < (once_a_step ? 0 : microbatches); ++m) {
      if (exchanged.count({k, m}) == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("message ", k, " is not exchanged for microbatch ", m));
      }
    }
  }
  return absl::OkStatus();
}

// Where steps are validated late: what may run twice stands in front, and the list ends with NORM and the updates,
// of which the first has GradientScale.
absl::Status CheckLate(const RankPlan& p) {
  const auto bad = [&](int i, absl::string_view fault) {
    return absl::InvalidArgumentError(absl::StrCat("train action ", i, " ", ActionName(p, p.train(i)), ": ", fault));
  };
  const int actions = p.train_size();
  int updates = actions;
  while (updates > 0 && p.train(updates - 1).kind() == plan::UPDATE) --updates;
  if (updates == 0 || updates == actions || p.train(updates - 1).kind() != plan::NORM)
    return absl::InvalidArgumentError("a step that is validated late does not end with NORM and UPDATE");
  for (int i = 0; i < updates - 1; ++i) {
    if (p.train(i).kind() == plan::UPDATE || p.train(i).kind() == plan::NORM)
      return bad(i, "before the end of the step");
  }
  for (int i = updates; i < actions; ++i) {
    if (p.train(i).program() < 0) return bad(i, "has no program");
    const plan::Program& program = p.programs(p.train(i).program());
    int scales = 0;
    for (const plan::Instruction& instruction : program.instructions()) {
      const auto writes = [&](int32_t tensor) {
        return tensor >= 0 && std::find(instruction.outputs().begin(), instruction.outputs().end(), tensor) !=
                                  instruction.outputs().end();
      };
      if (!writes(p.gradient_norm()) && !writes(p.loss())) continue;
      ++scales;
      if (instruction.op() != "GradientScale" || instruction.inputs_size() < 2 ||
          instruction.outputs_size() != 3 || instruction.outputs(0) < 0 ||
          p.tensors(instruction.outputs(0)).dtype() != static_cast<int>(DType::kFloat64) ||
          p.tensors(instruction.outputs(0)).shape_size() != 0)
        return bad(i, "makes loss and norm with an instruction that has no scale");
      for (int32_t tensor : instruction.inputs()) {
        if (tensor >= 0 && p.tensors(tensor).dtype() != static_cast<int>(DType::kFloat64))
          return bad(i, "its scale is not made of float64");
      }
    }
    if (scales != (i == updates)) return bad(i, "the first update has the scale of the gradients, and no other");
  }
  for (int i = 0; i < static_cast<int>(p.validate_at()); ++i) {
    const Action& action = p.train(i);
    if (action.kind() != plan::F && action.kind() != plan::SEND_F && action.kind() != plan::RECV_F)
      return bad(i, "cannot run twice, and stands in front of the validation");
    if (action.kind() != plan::F || action.program() < 0) continue;
    for (const plan::Instruction& instruction : p.programs(action.program()).instructions()) {
      for (int32_t tensor : instruction.outputs()) {
        if (tensor < 0) continue;
        const uint32_t buffer = p.tensors(tensor).buffer();
        const plan::BufferKind kind = p.buffers(buffer).kind();
        const auto holds = [&](int32_t sum) {
          return sum >= 0 && sum < p.tensors_size() && p.tensors(sum).buffer() == buffer;
        };
        const bool stays = kind == plan::GRADIENT || kind == plan::PARAMETER || kind == plan::OPTIMIZER_STATE;
        if (stays || holds(p.loss_sum()) || holds(p.loss_weight()))
          return bad(i, "writes what stays, and stands in front of the validation");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckActions(const RankPlan& rank_plan) {
  if (rank_plan.training()) {
    RETURN_IF_ERROR(CheckList(rank_plan, rank_plan.train(), true));
    if (rank_plan.validates_late()) RETURN_IF_ERROR(CheckLate(rank_plan));
  } else if (rank_plan.train_size() != 0) {
    return absl::InvalidArgumentError("a plan for inference has training actions");
  }
  return CheckList(rank_plan, rank_plan.eval(), false);
}

std::vector<ActionRun> RunsOf(const RankPlan& rank_plan, bool training, int steps) {
  const auto& actions = training ? rank_plan.train() : rank_plan.eval();
  int lag = 0;
  for (const Action& action : actions) lag = std::max(lag, static_cast<int>(action.lag()));
  std::vector<ActionRun> runs;
  for (int round = 0; round < steps + lag; ++round) {
    for (int i = 0; i < actions.size(); ++i) {
      const int step = round - static_cast<int>(actions[i].lag());
      if (step >= 0 && step < steps) runs.push_back({i, step});
    }
  }
  return runs;
}

std::string ActionName(const RankPlan& rank_plan, const Action& action) {
  std::string name = action.stage() >= 0 ? absl::StrCat(action.stage()) : "";
  absl::StrAppend(&name, plan::ActionKind_Name(action.kind()));
  if (action.microbatch() >= 0) absl::StrAppend(&name, action.microbatch());
  if (IsMessage(action.kind()) && action.messages_size() == 1 &&
      action.messages(0) < static_cast<uint32_t>(rank_plan.messages_size())) {
    const plan::Message& message = rank_plan.messages(action.messages(0));
    const int peer = message.sends() ? message.to_stage() : message.from_stage();
    if (peer != action.stage() + 1 && peer != action.stage() - 1) absl::StrAppend(&name, ">", peer);
  }
  return name;
}

}  // namespace pipec
