// What the compiler knows of one model at a time: the graph, and with each level (DESIGN.md, "Levels and their
// verifiers") one more thing about it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/schedule/schedule.h"

namespace pipec {

enum class Level : uint8_t { kModel, kTraining, kStaged, kScheduled, kPlanned };
absl::string_view Name(Level level);

enum class Mode : uint8_t { kTrain, kInfer };

// A parameter that learns, and what the training graph holds for it.
struct TrainedParameter {
  Value* parameter = nullptr;
  // One per use, in use order (execution order of the consuming forward nodes): the sum over microbatches, output of
  // the last ai.pipec::Accumulate of that use.
  std::vector<Value*> accumulated;
  // Optimizer state in the order of the optimizer op's operands (adam: first moment, second moment); [k] belongs to the
  // k-th owner. Before level staged there is one owner; afterwards one per rank that uses the parameter, ascending.
  std::vector<std::vector<Value*>> states;
  // The optimizer nodes, one an owner.
  std::vector<Node*> updates;
};

struct Training {
  std::string optimizer;  // sgd, momentum, nesterov, adam, adamw, adagrad
  // Scalars summed over the microbatches of a step (outputs of ai.pipec::Accumulate): the loss (float64), what it
  // is to be divided by (float64; null: each microbatch counts 1), and for evaluation the number of correct
  // predictions and of predictions (int64; null if there are no class labels).
  Value* loss_sum = nullptr;
  Value* loss_weight = nullptr;
  // The loss of a batch is the sum over its microbatches: loss_sum is divided by nothing. loss_weight is null.
  bool loss_is_sum = false;
  // Padding would weigh in the loss, so evaluation adds up whole microbatches only (Accumulate's attribute
  // samples). loss_weight is null.
  bool loss_of_whole_microbatches = false;
  Value* correct = nullptr;
  Value* predictions = nullptr;
  // In the order of the model's initializers; parameters the loss does not depend on are not among them.
  std::vector<TrainedParameter> parameters;
  // ai.pipec::GradientScale, one a rank from level staged on. Outputs: scale, gradient norm, loss.
  // Without norms: one, for the loss, on its rank.
  std::vector<Node*> gradient_scales;
  // Every rank learns the norm of all gradients before it updates. False: each stage updates by itself.
  bool has_norm = true;
};

enum class MessageKind : uint8_t {
  kActivation,  // forward, per microbatch
  kGradient,    // backward, per microbatch
  kTied,        // accumulators of a shared parameter, once a step (REDUCE_TIED)
  kNorm,        // squared norms, loss and loss weight, once a step (NORM)
};

// The tensors from one stage to another: a node of op ai.pipec::Message whose input k, made in `from_stage`,
// arrives as output k in `to_stage` (which is also the node's stage).
struct Message {
  Node* node = nullptr;
  MessageKind kind = MessageKind::kActivation;
  int from_stage = 0;
  int to_stage = 0;
};

// Forward nodes of a stage that run again, in their order and as a whole, in front of the first of their backward nodes
// that needs it; the results of `kept` among them stay instead.
struct RecomputedSegment {
  std::vector<Node*> nodes;
  std::vector<Node*> kept;
};

struct Stage {
  int rank = 0;
  // Modelled seconds per microbatch and how they were made.
  StageTimes times;
  // What runs again for the backward pass instead of being kept.
  std::vector<RecomputedSegment> recomputed;
};

enum class BufferKind : uint8_t {
  kParameter, kGradient, kOptimizerState, kActivation, kMessage, kTransient, kInput, kOutput, kConstant,
};
inline constexpr int kBufferKinds = 9;
absl::string_view Name(BufferKind kind);

// Pieces of a rank's arena: slot k lies at offsets[k]. Several slots hold several microbatches at once, or give
// each the place that is free when it runs.
struct Buffer {
  std::string name;
  BufferKind kind = BufferKind::kTransient;
  int64_t bytes = 0;       // of one slot
  int slot_class = -1;     // index into RankMemory::slot_classes; -1: the same place for every microbatch
  std::vector<int64_t> offsets = {0};
  int slots() const { return static_cast<int>(offsets.size()); }
  int64_t aligned_bytes() const { return (bytes + 63) / 64 * 64; }
};

// How a class finds a slot in training. All but kTable are for schedules without flush.
enum class SlotRule : uint8_t {
  kTable,    // microbatch m: train[m]
  kCycle,    // microbatch m of step t: t M + m, modulo the slots
  kVersion,  // of the weight version that is read or written: the next slot, modulo all, with every update
  kStep,     // step t: t modulo the slots
};

// Buffers that live and die together share a class: which slot microbatch m uses, in training and in evaluation.
// Evaluation finds kVersion in the newest version's slot, kStep in the first.
struct SlotClass {
  int slots = 1;
  std::vector<int> train;  // kTable: M entries
  std::vector<int> eval;   // kTable and kCycle: M entries
  SlotRule rule = SlotRule::kTable;
};

// Where a value lies on one rank: a whole buffer or a part of it (views and in-place results share a buffer).
struct Location {
  int buffer = -1;
  int64_t offset = 0;  // within the slot
};

// A straight list of nodes that one action runs.
struct Program {
  int stage = 0;
  ActionKind kind = ActionKind::kF;  // kF, kB, kI, kW, kNorm, kUpdate
  std::vector<Node*> nodes;          // views have no instruction and are not listed
};

struct RankMemory {
  std::vector<Program> programs;
  std::vector<Buffer> buffers;
  std::vector<SlotClass> slot_classes;
  absl::flat_hash_map<const Value*, Location> locations;
  int64_t arena_bytes = 0;
  int64_t lower_bound = 0;  // of arena_bytes: the largest sum of bytes that are live at once
  // What is live when most is, by kind; gaps between it, and what the arena has beyond that, count as transients.
  std::array<int64_t, kBufferKinds> peaks = {};
  int64_t workspace_bytes = 0;  // that kernels and steps want beside the arena, as far as it is known
  int64_t needed_bytes() const { return arena_bytes + workspace_bytes; }
};

// An output that the model declares but import could not make, left out in training.
struct RefusedOutput {
  std::string name;
  std::string why;         // names node, op and opset
  int position = 0;        // how many of Graph::outputs stand before it
  bool is_float = true;    // as declared, true if nothing is
  bool is_scalar = false;  // declared with one element
};

// An output whose size depends on data: of its entries along `axis` the first are there, as many as the output
// `count` (int64 []) says. Both by the names that they have outside.
struct CountedOutput {
  std::string output;
  int axis = 0;
  std::string count;
};

struct Module {
  std::string model_name;
  int opset = 0;  // of domain ai.onnx, that the model was written in; 0: not known
  Level level = Level::kModel;
  Mode mode = Mode::kTrain;
  Graph graph;

  // What products and most other ops compute in: float32, bfloat16 or float16 (--precision).
  DType precision = DType::kFloat32;

  // Samples: batch = microbatches x replicas x microbatch_size.
  int64_t microbatch_size = 1;
  // The inputs give the batch as a number, which may then stand in constants too.
  bool batch_is_written = false;
  int replicas = 1;

  Training training;                // from level training on (mode train)
  std::vector<Stage> stages;        // from level staged on
  std::vector<Message> messages;    // from level staged on
  double partition_bound = 0;       // seconds: lower bound of the slowest stage
  Schedule schedule;                // from level scheduled on, messages included
  Schedule eval_schedule;           // from level scheduled on: forward only, messages included
  Simulation simulation;            // of `schedule`
  bool lr_by_delay = false;         // --staleness=lr: the learning rate is scaled by the weights' delay
  std::vector<RankMemory> memory;   // from level planned on, one a rank

  std::vector<RefusedOutput> refused_outputs;
  std::vector<CountedOutput> counted_outputs;  // mode infer; their counts are outputs of the graph as well

  // Facts that the report shows to the user: what was assumed (and the flag that changes it), what was left out.
  std::vector<std::string> notes;
};

// Stages owned by one rank, ascending.
std::vector<int> StagesOfRank(const Module& module, int rank);

}  // namespace pipec
