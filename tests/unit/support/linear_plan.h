// A plan built by hand: y = (x W0) W1, mean squared error, sgd. Two stages, on one rank or two (then 1f1b),
// so that the runtime can be tested without the compiler.
//
//   rank 0: 0F0 SEND 0F1 SEND RECV 0B0 0F2 SEND RECV 0B1 ...
//   rank 1: RECV 1F0 RECV 1B0 SEND 1F1 RECV 1B1 SEND ...
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/tensor_type.h"
#include "runtime/plan/manifest.h"
#include "runtime/plan/plan.pb.h"

namespace pipec::testing {

struct LinearShape {
  int ranks = 2;
  int microbatches = 4;
  int samples = 3;  // of a microbatch
  int in = 5, hidden = 4, out = 2;
  int replicas = 1;
};

inline constexpr char kParametersFile[] = "parameters.bin";

// Builds one rank's plan. Every tensor gets a buffer of its own; what lives from action to action has two
// slots.
class LinearPlanBuilder {
 public:
  LinearPlanBuilder(const LinearShape& shape, int rank) : shape_(shape) {
    plan_.set_format(kPlanFormat);
    plan_.set_rank(rank);
    plan_.set_ranks(shape.ranks);
    plan_.set_virtual_stages(2 / shape.ranks);
    plan_.set_microbatches(shape.microbatches);
    plan_.set_microbatch_size(shape.samples);
    plan_.set_replicas(shape.replicas);
    plan_.set_training(true);
    for (int stage = 0; stage < 2; ++stage) plan_.add_rank_of_stage(RankOf(stage));
    plan::SlotClass* slots = plan_.add_slot_classes();
    slots->set_slots(2);
    for (int m = 0; m < shape.microbatches; ++m) {
      slots->add_train(m % 2);
      slots->add_eval(m % 2);
    }
    plan_.set_correct(-1);
    plan_.set_predictions(-1);
    plan_.set_loss_sum(-1);
    plan_.set_loss_weight(-1);
  }

  plan::RankPlan Build() {
    const bool first = Has(0), second = Has(1), alone = first && second;
    const int b = shape_.samples;
    if (first) {
      Slotted("x", plan::INPUT, DType::kFloat32, {b, shape_.in});
      Parameter("W0", {shape_.in, shape_.hidden}, 0, 0);
      Slotted("h", plan::ACTIVATION, DType::kFloat32, {b, shape_.hidden});
      Add(Program(0, plan::F), "MatMul", "", "h", {"x", "W0"}, {"h"});
      Port(plan_.add_inputs(), "x", "x");
    }
    if (second) {
      Slotted("labels", plan::INPUT, DType::kFloat32, {b, shape_.out});
      Parameter("W1", {shape_.hidden, shape_.out}, int64_t{4} * shape_.in * shape_.hidden, 1);
      if (!alone) Slotted("h", plan::MESSAGE, DType::kFloat32, {b, shape_.hidden});
      Slotted("y", plan::OUTPUT, DType::kFloat32, {b, shape_.out});
      Slotted("dh", plan::MESSAGE, DType::kFloat32, {b, shape_.hidden});
      Single("one", plan::CONSTANT, DType::kFloat32, {});
      const float one = 1;
      plan::Constant* constant = plan_.add_constants();
      constant->set_tensor(At("one"));
      constant->set_data(&one, 4);
      for (const char* name : {"l", "n", "dy"}) {
        Single(name, plan::TRANSIENT, DType::kFloat32, name[0] == 'd' ? Shape{b, shape_.out} : Shape{});
      }
      Single("dW1", plan::TRANSIENT, DType::kFloat32, {shape_.hidden, shape_.out});
      Scalar("loss_sum");
      Scalar("loss_weight");
      plan_.set_loss_sum(At("loss_sum"));
      plan_.set_loss_weight(At("loss_weight"));
      plan::Program* f = Program(1, plan::F);
      Add(f, "MatMul", "", "y", {"h", "W1"}, {"y"});
      Add(f, "MeanSquaredError", kDomain, "loss", {"y", "labels"}, {"l", "n"});
      Add(f, "Accumulate", kDomain, "sum loss", {"loss_sum", "l"}, {"loss_sum"});
      Add(f, "Accumulate", kDomain, "sum weight", {"loss_weight", "n"}, {"loss_weight"});
      plan::Program* back = Program(1, plan::B);
      Add(back, "MeanSquaredErrorGrad", kDomain, "dy", {"one", "y", "labels"}, {"dy"});
      Product(back, "dW1", "h", "dy", true, false);
      Add(back, "Accumulate", kDomain, "sum dW1", {"gW1", "dW1"}, {"gW1"});
      Product(back, "dh", "dy", "W1", false, true);
      Port(plan_.add_inputs(), "labels", "labels");
      Port(plan_.add_outputs(), "y", "y");
    }
    if (first) {
      if (!alone) Slotted("dh", plan::MESSAGE, DType::kFloat32, {b, shape_.hidden});
      Single("dW0", plan::TRANSIENT, DType::kFloat32, {shape_.in, shape_.hidden});
      plan::Program* back = Program(0, plan::B);
      Product(back, "dW0", "x", "dh", true, false);
      Add(back, "Accumulate", kDomain, "sum dW0", {"gW0", "dW0"}, {"gW0"});
    }
    Update(first, second);
    alone ? ListAlone() : first ? ListFirst() : ListSecond();
    plan_.set_arena_bytes(end_);
    return plan_;
  }

 private:
  static constexpr char kDomain[] = "ai.pipec";

  int RankOf(int stage) const { return shape_.ranks == 1 ? 0 : stage; }
  bool Has(int stage) const { return RankOf(stage) == static_cast<int>(plan_.rank()); }
  int At(const std::string& name) const { return tensors_.at(name); }

  void Tensor(const std::string& name, plan::BufferKind kind, DType dtype, const Shape& shape,
              int slot_class) {
    plan::Buffer* buffer = plan_.add_buffers();
    buffer->set_name(name);
    buffer->set_kind(kind);
    buffer->set_bytes(NumElements(shape) * SizeOf(dtype));
    buffer->set_slot_class(slot_class);
    for (int slot = 0; slot < (slot_class < 0 ? 1 : 2); ++slot) {
      buffer->add_offsets(end_);
      end_ += (buffer->bytes() + 63) / 64 * 64;
    }
    plan::Tensor* tensor = plan_.add_tensors();
    tensor->set_name(name);
    tensor->set_dtype(static_cast<int>(dtype));
    for (int64_t dim : shape) tensor->add_shape(dim);
    tensor->set_buffer(plan_.buffers_size() - 1);
    tensors_[name] = plan_.tensors_size() - 1;
  }
  void Slotted(const std::string& name, plan::BufferKind kind, DType dtype, const Shape& shape) {
    Tensor(name, kind, dtype, shape, 0);
  }
  void Single(const std::string& name, plan::BufferKind kind, DType dtype, const Shape& shape) {
    Tensor(name, kind, dtype, shape, -1);
  }
  void Scalar(const std::string& name) { Single(name, plan::TRANSIENT, DType::kFloat64, {}); }

  void Parameter(const std::string& name, const Shape& shape, int64_t offset, int index) {
    Single(name, plan::PARAMETER, DType::kFloat32, shape);
    Single("g" + name, plan::GRADIENT, DType::kFloat32, shape);
    plan::Parameter* parameter = plan_.add_parameters();
    parameter->set_name(name);
    parameter->set_tensor(At(name));
    parameter->set_file(kParametersFile);
    parameter->set_offset(offset);
    parameter->set_length(4 * NumElements(shape));
    parameter->set_trained(true);
    parameter->set_first_owner(true);
    parameter->set_index(index);
  }
  static void Port(plan::Port* port, const std::string& name, int tensor) {
    port->set_name(name);
    port->set_tensor(tensor);
  }
  void Port(plan::Port* port, const std::string& name, const std::string& tensor) {
    Port(port, name, At(tensor));
  }

  plan::Program* Program(int stage, plan::ActionKind kind) {
    plan::Program* program = plan_.add_programs();
    program->set_stage(stage);
    program->set_kind(kind);
    programs_[{stage, kind}] = plan_.programs_size() - 1;
    return program;
  }
  plan::Instruction* Add(plan::Program* program, const std::string& op, const std::string& domain,
                         const std::string& name, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs) {
    plan::Instruction* instruction = program->add_instructions();
    instruction->set_op(op);
    instruction->set_domain(domain);
    instruction->set_name(name);
    for (const std::string& input : inputs) instruction->add_inputs(At(input));
    for (const std::string& output : outputs) instruction->add_outputs(At(output));
    return instruction;
  }
  static void Int(plan::Instruction* instruction, const std::string& name, int64_t value) {
    plan::Attribute* attribute = instruction->add_attributes();
    attribute->set_name(name);
    attribute->set_i(value);
  }
  void Product(plan::Program* program, const std::string& out, const std::string& a, const std::string& b,
               bool trans_a, bool trans_b) {
    plan::Instruction* product = Add(program, "FusedMatMul", kDomain, out, {a, b}, {out});
    Int(product, "trans_a", trans_a);
    Int(product, "trans_b", trans_b);
  }

  // Each rank sends its norm (rank 1 loss and weight too) to the other; both compute scale, norm and loss.
  void Update(bool first, bool second) {
    for (const char* name : {"norm0", "norm1", "scale", "gradient_norm", "loss"}) Scalar(name);
    if (!second) Scalar("loss_sum"), Scalar("loss_weight");
    plan::Program* norm = Program(first ? 0 : 1, plan::NORM);
    if (first) Add(norm, "SquaredNorm", kDomain, "norm of W0", {"gW0"}, {"norm0"});
    if (second) Add(norm, "SquaredNorm", kDomain, "norm of W1", {"gW1"}, {"norm1"});
    plan::Program* update = Program(first ? 0 : 1, plan::UPDATE);
    plan::Instruction* scale =
        Add(update, "GradientScale", kDomain, "scale", {"loss_sum", "loss_weight", "norm0", "norm1"},
            {"scale", "gradient_norm", "loss"});
    plan::Attribute* order = scale->add_attributes();
    order->set_name("order");
    order->mutable_ints()->add_values(0);
    order->mutable_ints()->add_values(1);
    plan::Attribute* weight = scale->add_attributes();
    weight->set_name("weight");
    weight->set_f(1);
    if (first) Int(Add(update, "Sgd", kDomain, "update W0", {"W0", "gW0", "scale"}, {"W0"}), "parameter", 0);
    if (second) Int(Add(update, "Sgd", kDomain, "update W1", {"W1", "gW1", "scale"}, {"W1"}), "parameter", 1);
    plan_.set_gradient_norm(At("gradient_norm"));
    plan_.set_loss(At("loss"));
  }

  int Message(plan::MessageKind kind, int from, int to, const std::vector<std::string>& tensors) {
    plan::Message* message = plan_.add_messages();
    message->set_kind(kind);
    message->set_from_stage(from);
    message->set_to_stage(to);
    message->set_sends(Has(from));
    message->set_peer_rank(RankOf(message->sends() ? to : from));
    for (const std::string& tensor : tensors) message->add_tensors(At(tensor));
    return plan_.messages_size() - 1;
  }
  void Do(bool train, bool eval, plan::ActionKind kind, int stage, int microbatch,
          std::vector<int> messages = {}) {
    plan::Action action;
    action.set_kind(kind);
    action.set_stage(stage);
    action.set_microbatch(microbatch);
    auto program = programs_.find({kind == plan::NORM ? (Has(0) ? 0 : 1) : stage, kind});
    action.set_program(program == programs_.end() ? -1 : program->second);
    for (int message : messages) action.add_messages(message);
    if (train) *plan_.add_train() = action;
    if (eval) *plan_.add_eval() = action;
  }

  // Behind the last B of its stage.
  void AddUp(int stage, const std::vector<std::string>& tensors) {
    if (shape_.replicas == 1) return;
    Do(true, false, plan::REDUCE_GRAD, stage, -1);
    for (const std::string& tensor : tensors)
      plan_.mutable_train(plan_.train_size() - 1)->add_sums(At(tensor));
  }

  void ListAlone() {
    for (int m = 0; m < shape_.microbatches; ++m) {
      Do(true, true, plan::F, 0, m);
      Do(true, true, plan::F, 1, m);
      Do(true, false, plan::B, 1, m);
      if (m == shape_.microbatches - 1) AddUp(1, {"gW1", "loss_sum", "loss_weight"});
      Do(true, false, plan::B, 0, m);
    }
    AddUp(0, {"gW0"});
    Do(true, false, plan::NORM, -1, -1);
    Do(true, false, plan::UPDATE, 0, -1);
  }
  void ListFirst() {
    const int h = Message(plan::ACTIVATIONS, 0, 1, {"h"}), dh = Message(plan::GRADIENTS, 1, 0, {"dh"});
    const int mine = Message(plan::NORMS, 0, 1, {"norm0"});
    const int theirs = Message(plan::NORMS, 1, 0, {"norm1", "loss_sum", "loss_weight"});
    const int count = shape_.microbatches;
    for (int m = 0; m <= count; ++m) {
      if (m < count) Do(true, true, plan::F, 0, m), Do(true, true, plan::SEND_F, 0, m, {h});
      if (m > 0) Do(true, false, plan::RECV_B, 0, m - 1, {dh}), Do(true, false, plan::B, 0, m - 1);
    }
    AddUp(0, {"gW0"});
    Do(true, false, plan::NORM, -1, -1, {mine, theirs});
    Do(true, false, plan::UPDATE, 0, -1);
  }
  void ListSecond() {
    const int h = Message(plan::ACTIVATIONS, 0, 1, {"h"}), dh = Message(plan::GRADIENTS, 1, 0, {"dh"});
    const int theirs = Message(plan::NORMS, 0, 1, {"norm0"});
    const int mine = Message(plan::NORMS, 1, 0, {"norm1", "loss_sum", "loss_weight"});
    const int count = shape_.microbatches;
    Do(true, true, plan::RECV_F, 1, 0, {h});
    for (int m = 0; m < count; ++m) {
      Do(true, true, plan::F, 1, m);
      if (m + 1 < count) Do(true, true, plan::RECV_F, 1, m + 1, {h});
      Do(true, false, plan::B, 1, m);
      if (m == count - 1) AddUp(1, {"gW1", "loss_sum", "loss_weight"});
      Do(true, false, plan::SEND_B, 1, m, {dh});
    }
    Do(true, false, plan::NORM, -1, -1, {theirs, mine});
    Do(true, false, plan::UPDATE, 1, -1);
  }

  LinearShape shape_;
  plan::RankPlan plan_;
  int64_t end_ = 0;
  std::map<std::string, int> tensors_;
  std::map<std::pair<int, int>, int> programs_;
};

inline plan::RankPlan LinearPlan(const LinearShape& shape, int rank) {
  return LinearPlanBuilder(shape, rank).Build();
}

// Initial W0 and W1, laid end to end as in the parameters' file.
inline std::vector<float> LinearParameters(const LinearShape& shape) {
  std::vector<float> values(shape.in * shape.hidden + shape.hidden * shape.out);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 0.1f * static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
  return values;
}

inline void WriteBytes(const std::string& path, const void* bytes, size_t size) {
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
}

// Writes the manifest anew, with the hashes of the rank files as they are now.
inline void WriteManifest(const std::string& directory, const LinearShape& shape) {
  Manifest manifest;
  manifest.model = "linear";
  manifest.mode = "train";
  manifest.schedule = "1f1b";
  manifest.optimizer = "sgd";
  manifest.ranks = shape.ranks;
  manifest.virtual_stages = 2 / shape.ranks;
  manifest.microbatches = shape.microbatches;
  manifest.microbatch_size = shape.samples;
  manifest.replicas = shape.replicas;
  manifest.labels = "labels";
  manifest.inputs = {{"x", {DType::kFloat32, {shape.samples, shape.in}}, 0, 0},
                     {"labels", {DType::kFloat32, {shape.samples, shape.out}}, 0, 0}};
  manifest.outputs = {{"y", {DType::kFloat32, {shape.samples, shape.out}}, 0, 0}};
  manifest.parameters = {
      {"W0", {DType::kFloat32, {shape.in, shape.hidden}}, kParametersFile, 0},
      {"W1", {DType::kFloat32, {shape.hidden, shape.out}}, kParametersFile, 4 * shape.in * shape.hidden}};
  for (int rank = 0; rank < shape.ranks; ++rank) {
    manifest.files.push_back(*DescribeFile(directory + "/" + RankFileName(rank), RankFileName(rank)));
  }
  manifest.files.push_back(*DescribeFile(directory + "/" + kParametersFile, kParametersFile));
  const std::string json = ToJson(manifest);
  WriteBytes(directory + "/manifest.json", json.data(), json.size());
}

// A whole plan in a fresh directory.
inline void WriteLinearPlan(const std::string& directory, const LinearShape& shape) {
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  const std::vector<float> parameters = LinearParameters(shape);
  WriteBytes(directory + "/" + kParametersFile, parameters.data(), 4 * parameters.size());
  WriteBytes(directory + "/export.onnx", "onnx", 4);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const std::string bytes = LinearPlan(shape, rank).SerializeAsString();
    WriteBytes(directory + "/" + RankFileName(rank), bytes.data(), bytes.size());
  }
  WriteManifest(directory, shape);
}

}  // namespace pipec::testing
