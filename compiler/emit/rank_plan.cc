#include "compiler/cost/node_cost.h"
#include "compiler/emit/rank_plan.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/emit/attribute_proto.h"
#include "compiler/ir/once_a_step.h"
#include "compiler/ir/validate_at.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status.h"
#include "runtime/plan/manifest.h"

namespace pipec {
namespace {

// Marks what evaluation alone runs; a field of the instruction in a plan.
constexpr char kEvalOnly[] = "eval_only";

plan::ActionKind ToProto(ActionKind kind) {
  switch (kind) {
    case ActionKind::kF:
      return plan::F;
    case ActionKind::kB:
      return plan::B;
    case ActionKind::kI:
      return plan::I;
    case ActionKind::kW:
      return plan::W;
    case ActionKind::kSendF:
      return plan::SEND_F;
    case ActionKind::kRecvF:
      return plan::RECV_F;
    case ActionKind::kSendB:
      return plan::SEND_B;
    case ActionKind::kRecvB:
      return plan::RECV_B;
    case ActionKind::kReduceGrad:
      return plan::REDUCE_GRAD;
    case ActionKind::kReduceTied:
      return plan::REDUCE_TIED;
    case ActionKind::kNorm:
      return plan::NORM;
    case ActionKind::kUpdate:
      return plan::UPDATE;
  }
  return plan::F;
}

plan::BufferKind ToProto(BufferKind kind) {
  switch (kind) {
    case BufferKind::kParameter:
      return plan::PARAMETER;
    case BufferKind::kGradient:
      return plan::GRADIENT;
    case BufferKind::kOptimizerState:
      return plan::OPTIMIZER_STATE;
    case BufferKind::kActivation:
      return plan::ACTIVATION;
    case BufferKind::kMessage:
      return plan::MESSAGE;
    case BufferKind::kTransient:
      return plan::TRANSIENT;
    case BufferKind::kInput:
      return plan::INPUT;
    case BufferKind::kOutput:
      return plan::OUTPUT;
    case BufferKind::kConstant:
      return plan::CONSTANT;
  }
  return plan::TRANSIENT;
}

plan::SlotRule ToProto(SlotRule rule) {
  switch (rule) {
    case SlotRule::kTable:
      return plan::TABLE;
    case SlotRule::kCycle:
      return plan::CYCLE;
    case SlotRule::kVersion:
      return plan::VERSION;
    case SlotRule::kStep:
      return plan::STEP;
  }
  return plan::TABLE;
}

plan::MessageKind ToProto(MessageKind kind) {
  switch (kind) {
    case MessageKind::kActivation:
      return plan::ACTIVATIONS;
    case MessageKind::kGradient:
      return plan::GRADIENTS;
    case MessageKind::kTied:
      return plan::TIED;
    case MessageKind::kNorm:
      return plan::NORMS;
  }
  return plan::ACTIVATIONS;
}

absl::StatusOr<std::string> Contents(const Value& constant) {
  const TensorData& data = constant.data;
  if (data.bytes) return *data.bytes;
  if (!data.file) return absl::InternalError(absl::StrCat("constant ", constant.name(), " has no contents"));
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(*data.file));
  if (data.offset > file.bytes().size() || data.length > file.bytes().size() - data.offset) {
    return absl::InvalidArgumentError(
        absl::StrCat("constant ", constant.name(), " lies outside '", *data.file, "'"));
  }
  return std::string(file.bytes().substr(data.offset, data.length));
}

class Writer {
 public:
  Writer(const Module& module, int rank, const ParameterPlacement& placement, const DeviceProfile* device)
      : module_(module), memory_(module.memory[rank]), rank_(rank), placement_(placement), device_(device) {
    for (const TrainedParameter& trained : module.training.parameters) {
      trained_.emplace(trained.parameter, static_cast<int>(trained_.size()));
    }
  }

  absl::StatusOr<plan::RankPlan> Write(absl::string_view version) {
    AddHead(version);
    AddMemory();
    for (const Program& program : memory_.programs) AddProgram(program);
    for (const Message& message : module_.messages) AddMessage(message);
    if (module_.mode == Mode::kTrain) {
      AddActions(module_.schedule, *out_.mutable_train(), &module_.simulation);
      AddActions(module_.eval_schedule, *out_.mutable_eval(), nullptr);
    } else {
      AddActions(module_.schedule, *out_.mutable_eval(), &module_.simulation);
    }
    for (const PlacedParameter& placed : placement_.parameters) AddParameter(placed);
    RETURN_IF_ERROR(AddConstants());
    AddPorts();
    AddScalars();
    return std::move(out_);
  }

 private:
  int RankOf(int stage) const { return module_.stages[stage].rank; }
  bool Has(const Value* value) const { return memory_.locations.contains(value); }

  // Index among the tensors; -1 for an absent operand.
  int TensorOf(const Value* value) {
    if (!value) return -1;
    auto [it, added] = tensors_.emplace(value, out_.tensors_size());
    if (added) {
      const Location& location = memory_.locations.at(value);
      plan::Tensor& tensor = *out_.add_tensors();
      tensor.set_name(value->name());
      tensor.set_dtype(static_cast<int>(value->type.dtype));
      tensor.mutable_shape()->Add(value->type.shape.begin(), value->type.shape.end());
      tensor.set_buffer(location.buffer);
      tensor.set_offset(location.offset);
    }
    return it->second;
  }

  void AddHead(absl::string_view version) {
    const ScheduleShape& shape = module_.schedule.shape;
    out_.set_format(kPlanFormat);
    out_.set_pipec_version(std::string(version));
    out_.set_rank(rank_);
    out_.set_ranks(shape.ranks);
    out_.set_virtual_stages(shape.virtual_stages);
    out_.set_microbatches(shape.microbatches);
    out_.set_microbatch_size(module_.microbatch_size);
    out_.set_replicas(module_.replicas);
    out_.set_training(module_.mode == Mode::kTrain);
    for (const Stage& stage : module_.stages) out_.add_rank_of_stage(stage.rank);
    out_.set_arena_bytes(memory_.arena_bytes);
    if (device_) out_.set_memory_limit(device_->memory_bytes);
    if (const std::vector<int> validate_at = ValidateAt(module_); !validate_at.empty()) {
      out_.set_validates_late(true);
      out_.set_validate_at(validate_at[rank_]);
    }
    if (!module_.schedule.asynchronous()) return;
    out_.set_asynchronous(true);
    out_.set_weight_delay(module_.schedule.weight_delay[rank_]);
    out_.set_lr_by_delay(module_.lr_by_delay);
  }

  void AddMemory() {
    for (const Buffer& buffer : memory_.buffers) {
      plan::Buffer& out = *out_.add_buffers();
      out.set_name(buffer.name);
      out.set_kind(ToProto(buffer.kind));
      out.set_bytes(buffer.bytes);
      out.mutable_offsets()->Add(buffer.offsets.begin(), buffer.offsets.end());
      out.set_slot_class(buffer.slot_class);
    }
    for (const SlotClass& slot_class : memory_.slot_classes) {
      plan::SlotClass& out = *out_.add_slot_classes();
      out.set_slots(slot_class.slots);
      out.mutable_train()->Add(slot_class.train.begin(), slot_class.train.end());
      out.mutable_eval()->Add(slot_class.eval.begin(), slot_class.eval.end());
      out.set_rule(ToProto(slot_class.rule));
    }
    for (int kind = 0; kind < kBufferKinds; ++kind) {
      if (memory_.peaks[kind] == 0) continue;
      plan::Peak& peak = *out_.add_peaks();
      peak.set_kind(ToProto(static_cast<BufferKind>(kind)));
      peak.set_bytes(memory_.peaks[kind]);
    }
  }

  void AddProgram(const Program& program) {
    programs_[{program.kind, program.kind == ActionKind::kNorm ? -1 : program.stage}] = out_.programs_size();
    plan::Program& out = *out_.add_programs();
    out.set_stage(program.stage);
    out.set_kind(ToProto(program.kind));
    for (const Node* node : program.nodes) {
      plan::Instruction& instruction = *out.add_instructions();
      instruction.set_op(node->op());
      instruction.set_domain(node->domain());
      instruction.set_name(node->name());
      Attributes attributes = node->attributes;
      instruction.set_eval_only(attributes.Int(kEvalOnly) != 0);
      attributes.Erase(kEvalOnly);
      attributes.Erase(kValidateAt);
      instruction.set_once_a_step(RunsOnceAStep(memory_, *node));
      const NodeCost cost = CostOf(*node);
      instruction.set_flops(cost.flops);
      instruction.set_bytes(cost.bytes);
      if (device_) instruction.set_modelled_seconds(NodeSeconds(*node, *device_));
      AddAttributes(attributes, instruction);
      for (const Value* value : node->inputs()) instruction.add_inputs(TensorOf(value));
      for (const Value* value : node->outputs()) instruction.add_outputs(TensorOf(value));
    }
  }

  void AddMessage(const Message& message) {
    const int from = RankOf(message.from_stage), to = RankOf(message.to_stage);
    if (from == to || (from != rank_ && to != rank_)) return;
    const bool sends = from == rank_;
    messages_[{message.kind, message.from_stage, message.to_stage}] = out_.messages_size();
    plan::Message& out = *out_.add_messages();
    out.set_kind(ToProto(message.kind));
    out.set_from_stage(message.from_stage);
    out.set_to_stage(message.to_stage);
    out.set_peer_rank(sends ? to : from);
    out.set_sends(sends);
    for (const Value* value : sends ? message.node->inputs() : message.node->outputs()) {
      out.add_tensors(TensorOf(value));
    }
  }

  void AddActions(const Schedule& schedule, google::protobuf::RepeatedPtrField<plan::Action>& out,
                  const Simulation* simulation) {
    for (int k = 0; k < schedule.ranks[rank_].size(); ++k) {
      const Action& action = schedule.ranks[rank_][k];
      plan::Action& row = *out.Add();
      row.set_kind(ToProto(action.kind));
      row.set_stage(action.stage);
      row.set_microbatch(action.microbatch);
      row.set_lag(action.lag);
      auto program = programs_.find({action.kind, action.stage});
      row.set_program(program == programs_.end() ? -1 : program->second);
      AddMessagesOf(action, row);
      if (!simulation) continue;
      const SimulatedAction& simulated = simulation->ranks[rank_][k];
      row.set_modelled_start(simulated.start);
      row.set_modelled_seconds(simulated.end - simulated.start);
    }
  }

  void AddMessagesOf(const Action& action, plan::Action& row) {
    if (IsMessage(action.kind)) {
      const bool sends = action.kind == ActionKind::kSendF || action.kind == ActionKind::kSendB;
      const bool forward = action.kind == ActionKind::kSendF || action.kind == ActionKind::kRecvF;
      row.add_messages(
          messages_.at({forward ? MessageKind::kActivation : MessageKind::kGradient,
                        sends ? action.stage : action.peer_stage, sends ? action.peer_stage : action.stage}));
      return;
    }
    if (action.kind == ActionKind::kReduceGrad) {
      for (const Value* value : SummedOverReplicas(module_, action.stage)) row.add_sums(TensorOf(value));
    }
    if (action.kind != ActionKind::kReduceTied && action.kind != ActionKind::kNorm) return;
    const MessageKind kind = action.kind == ActionKind::kNorm ? MessageKind::kNorm : MessageKind::kTied;
    for (const auto& [key, index] : messages_) {
      if (std::get<0>(key) == kind) row.add_messages(index);
    }
  }

  void AddParameter(const PlacedParameter& placed) {
    if (!Has(placed.value)) return;
    plan::Parameter& out = *out_.add_parameters();
    out.set_name(placed.value->name());
    out.set_tensor(TensorOf(placed.value));
    out.set_file(placed.file);
    out.set_offset(placed.offset);
    out.set_length(placed.type.bytes());
    if (placed.type.dtype != placed.value->type.dtype) out.set_dtype(static_cast<int>(placed.type.dtype));
    out.set_index(-1);
    int first = 0;
    while (!module_.memory[first].locations.contains(placed.value)) ++first;
    out.set_first_owner(first == rank_);
    const auto index = trained_.find(placed.value);
    if (index == trained_.end()) return;
    out.set_trained(true);
    out.set_index(index->second);
    const TrainedParameter& trained = module_.training.parameters[index->second];
    for (int owner = 0; owner < trained.updates.size(); ++owner) {
      if (RankOf(trained.updates[owner]->stage) != rank_) continue;
      for (const Value* state : trained.states[owner]) out.add_states(TensorOf(state));
    }
  }

  absl::Status AddConstants() {
    for (const Value* value : module_.graph.Values()) {
      if (value->kind() != ValueKind::kConstant || !Has(value)) continue;
      ASSIGN_OR_RETURN(std::string contents, Contents(*value));
      plan::Constant& out = *out_.add_constants();
      out.set_tensor(TensorOf(value));
      out.set_data(std::move(contents));
    }
    return absl::OkStatus();
  }

  void AddPorts() {
    for (const Value* value : module_.graph.inputs()) {
      if (!Has(value)) continue;
      plan::Port& port = *out_.add_inputs();
      port.set_name(value->name());
      port.set_tensor(TensorOf(value));
    }
    if (module_.mode != Mode::kInfer) return;
    for (const Value* value : module_.graph.outputs) {
      if (!value->producer() || RankOf(value->producer()->stage) != rank_) continue;
      plan::Port& port = *out_.add_outputs();
      port.set_name(value->output_name.empty() ? value->name() : value->output_name);
      port.set_tensor(TensorOf(value));
    }
  }

  void AddScalars() {
    const Training& training = module_.training;
    // Sums are read where they are made, though other ranks may receive a copy.
    auto made_here = [&](const Value* value) {
      return value && RankOf(value->producer()->stage) == rank_ ? TensorOf(value) : -1;
    };
    out_.set_loss_sum(made_here(training.loss_sum));
    out_.set_loss_weight(made_here(training.loss_weight));
    out_.set_loss_is_sum(training.loss_is_sum);
    out_.set_loss_of_whole_microbatches(training.loss_of_whole_microbatches);
    out_.set_correct(made_here(training.correct));
    out_.set_predictions(made_here(training.predictions));
    out_.set_gradient_norm(-1);
    out_.set_loss(-1);
    for (const Node* scale : training.gradient_scales) {
      if (RankOf(scale->stage) != rank_) continue;
      if (training.has_norm) out_.set_gradient_norm(TensorOf(scale->output(1)));
      out_.set_loss(TensorOf(scale->output(2)));
    }
  }

  const Module& module_;
  const RankMemory& memory_;
  const int rank_;
  const ParameterPlacement& placement_;
  const DeviceProfile* const device_;
  plan::RankPlan out_;
  absl::flat_hash_map<const Value*, int> trained_;  // index among the trained parameters
  absl::flat_hash_map<const Value*, int> tensors_;
  std::map<std::pair<ActionKind, int>, int> programs_;
  std::map<std::tuple<MessageKind, int, int>, int> messages_;
};

}  // namespace

absl::StatusOr<plan::RankPlan> MakeRankPlan(const Module& module, int rank,
                                            const ParameterPlacement& placement,
                                            absl::string_view pipec_version, const DeviceProfile* device) {
  return Writer(module, rank, placement, device).Write(pipec_version);
}

}  // namespace pipec
