// The action loop of one rank. Everything is prepared at Create; a step allocates nothing from the heap,
// infers nothing and decides nothing. One thread makes all calls, Create included (a CPU device's threads
// belong to it).
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/device/device.h"
#include "runtime/device/lagging_device.h"
#include "runtime/device/scalars.h"
#include "runtime/executor/arena.h"
#include "runtime/executor/program.h"
#include "runtime/executor/run_times.h"
#include "runtime/executor/step_block.h"
#include "runtime/executor/waits.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/transport/transport.h"

namespace pipec {

struct ExecutorOptions {
  int replica = 0;                              // whose ranks are this one's peers
  absl::Duration timeout = absl::Seconds(300);  // how long to wait for a message
  bool check_finite = false;                    // look at every instruction's operands
  bool profile = false;                         // measure every instruction, action and message
  bool trace = false;                           // keep begin and end of every action of the last step
};

// What goes into and comes out of a step. Host memory; entry port * M + m is that of a port of the rank's
// plan for microbatch m.
struct StepData {
  absl::Span<const std::byte* const> inputs;
  absl::Span<std::byte* const> outputs;  // empty, or null entries: not wanted. Evaluation only
};

// An instruction that made NaN or infinity out of finite operands or, failing that, the first with such a
// result.
struct NonFinite {
  bool found = false;
  bool origin = false;  // its operands were finite
  int action = 0;
  int stage = 0;
  int microbatch = -1;
  plan::ActionKind kind = plan::F;
  absl::string_view node;  // the plan's
  absl::string_view op;
  int replica = -1;  // where there are several
};

struct StepResult {
  // The loss or the gradients' norm was NaN or infinite: nothing was updated.
  bool stopped = false;
  // Of a training step, where the rank's plan has them.
  std::optional<double> loss, gradient_norm;
  // The update did not wait for the norms of the other ranks, and what it assumed was wrong.
  bool ahead = false, redone = false;
  NonFinite first;  // with check_finite
};

// Who feeds the steps of a plan whose steps overlap and takes their results; called by the rank's thread, for steps in
// their order.
class StepSource {
 public:
  virtual ~StepSource() = default;
  // Before anything of a step happens: whether there is one. All ranks must be told the same.
  virtual bool Admit(int64_t step) = 0;
  // Before the first computation of a step. M scalars, and data that stay until the step has ended. Where steps may
  // begin again the one before has not ended as a rule; if it ends otherwise than it should have, this step is
  // admitted and begins once more.
  virtual absl::Status Begin(int64_t step, absl::Span<const StepScalars>* scalars, StepData* data) = 0;
  // After its last action. An error ends the run.
  virtual absl::Status End(int64_t step, const StepResult& result) = 0;
};

// A piece of a step as it happened: an action, or the wait for an exchange.
struct TraceSlice {
  int action = 0;
  int awaited = -1;  // the action that was waited for; -1: this is the action itself
  int64_t step = 0;
  bool undone = false;  // ran once more, as the update before had not been right
  std::chrono::steady_clock::time_point begin, end;
};

struct InstructionTime {
  absl::string_view node, op;  // the plan's
  std::string key;             // CostKey
  double flops = 0, bytes = 0;  // the plan's
  int stage = 0;
  plan::ActionKind kind = plan::F;
  double seconds = 0;  // of a run (RunTimes), the first step's apart
  int64_t runs = 0;
};

// One end of a message of the last step.
struct MessageTime {
  MessageTag tag;
  bool sends = false;
  int64_t bytes = 0;
  std::chrono::steady_clock::time_point posted;   // Send or Receive is called
  std::chrono::steady_clock::time_point awaited;  // the executor has nothing else left to do
  std::chrono::steady_clock::time_point done;
};

struct ProfileOfRank {
  std::vector<InstructionTime> instructions;
  // What an action of kind F, B, I or W takes beside its instructions: feeding, dispatch. Seconds; 0 if none ran.
  double action_seconds = 0;
  std::vector<MessageTime> messages;
};

class Executor {
 public:
  // Allocates the arena, loads the rank's parameters and constants, prepares every instruction. The plan must
  // have been verified. `device` and `transport` must outlive the executor.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(plan::RankPlan rank_plan,
                                                          const std::string& plan_directory, Device& device,
                                                          Transport& transport,
                                                          const ExecutorOptions& options);

  // One step. `scalars` has M entries; what happens once a step gets the first. Errors name rank, stage,
  // action, microbatch and step; after one the executor is done for. An asynchronous plan trains by RunRounds only,
  // any other by both.
  absl::StatusOr<StepResult> Run(StepKind kind, absl::Span<const StepScalars> scalars, const StepData& data);

  // Training where steps overlap, as the plan is asynchronous or validates late, or as the device is behind its
  // host: steps begin, begin + 1, ... as long as the source admits them, and until the last has ended; the pipeline
  // is empty before and after. Weights are as after `begin` updates: a delay of theirs starts anew.
  absl::Status RunRounds(int64_t begin, StepSource& source);
  // Steps that are fed at once, at most.
  int steps_at_once() const { return may_begin_again() ? 2 : largest_lag_ + 1; }
  // Whether in rounds a step begins before it is known how the one before ends.
  bool may_begin_again() const {
    return plan_.validates_late() || (lagging_ != nullptr && !plan_.asynchronous());
  }
  // Whether the device is behind its host: then what is measured or looked at makes it wait.
  bool is_behind() const { return lagging_ != nullptr; }

  // Contents of a tensor: slot 0, or the newest weights. The sizes must be equal. Errors name rank and tensor.
  absl::Status Read(int tensor, absl::Span<std::byte> to);
  // Of a float64 scalar.
  absl::StatusOr<double> ReadScalar(int tensor);
  absl::StatusOr<int64_t> ReadCount(int tensor);

  const plan::RankPlan& rank_plan() const { return plan_; }
  void set_check_finite(bool on) { options_.check_finite = on; }
  // Of the last step, or the last rounds, in order of time.
  absl::Span<const TraceSlice> trace() const { return trace_; }
  // Of all steps so far, and the messages of the last.
  ProfileOfRank profile() const;
  // What it has of the device beside the arena: the kernels' workspace and the blocks of steps.
  int64_t workspace_bytes() const { return workspace_bytes_ + block_bytes_; }

 private:
  struct List {
    ListPlan plan;
    std::vector<std::unique_ptr<Event>> events;  // one an exchange
    // One an exchange; empty for a sum, or for a message.
    std::vector<std::vector<Piece>> pieces;
    std::vector<std::vector<Summand>> summands;
    std::vector<MessageTag> tags;    // one an exchange
    std::vector<char> under_way;     // one an exchange
    std::vector<MessageTime> times;  // one an exchange, with profile; of a sum no bytes
  };
  // What stands where in a plan that validates late, and what the steps so far say of the next.
  struct LateValidation {
    bool running = false;
    int norm = -1, first_update = -1;    // actions; updates stand from here to the end
    int program = -1, instruction = -1;  // GradientScale
    // On the device: the last loss weight, then at kZeros zeros in place of every other operand.
    std::byte* assumed = nullptr;
    std::vector<void*> operands;
    bool assumption_held = false;  // in the last step
  };
  // A step that runs.
  struct Running {
    Moment moment;                 // but for the microbatch
    int written_version_slot = 0;  // of an update
    bool begun = false;
    absl::Span<const StepScalars> scalars;
    StepData data;
    StepResult result;
    double assumed_scale = 0;  // of the gradients, if the step is validated late
    // Where the device finds these scalars and data: where they are, or in a block.
    const StepScalars* placed_scalars = nullptr;
    StepData placed;
    StepBlock* block = nullptr;
  };

  Executor(plan::RankPlan rank_plan, Device& device, Transport& transport, const ExecutorOptions& options)
      : plan_(std::move(rank_plan)),
        device_(device),
        lagging_(dynamic_cast<LaggingDevice*>(&device)),
        transport_(transport),
        options_(options) {}

  absl::Status Load(const std::string& plan_directory);
  absl::Status LoadParameters(const std::string& plan_directory);
  absl::Status PrepareList(StepKind kind);
  List& list(StepKind kind) { return lists_[kind == StepKind::kTrain ? 0 : 1]; }
  std::byte* Address(int tensor, const Moment& moment) const {
    return arena_ + RegionOf(plan_, tensor, moment).begin;
  }

  // The parts of one action.
  absl::Status Place(Running& step);
  absl::Status RunAction(int index, Running& step);
  // Its inputs, its program, what it exchanges, its outputs. Errors name no more than a node or a port.
  absl::Status RunParts(int index, const Moment& moment, Running& step);
  absl::Status RunUpdate(int index, Running& step);
  absl::Status RunProgram(int index, const Moment& moment, Running& step);
  absl::Status RunInstrumented(int index, const Moment& moment, Running& step);
  absl::Status CheckGuard(int program, int instruction, StepResult* result);
  absl::Status ReadBack(int tensor, absl::Span<std::byte> to);
  // On a device that is behind its host (behind.cc).
  absl::Status PrepareBehind();
  absl::Status RunBehind(int64_t begin, StepSource& source);
  absl::Status EnqueueStep(Running& step);
  absl::Status EnqueueActions(Running& step);
  absl::Status EndStep(Running& step);
  absl::Status CloseGate(const Moment& moment);
  int64_t WorkOf(const Running& step) const;
  // Of a plan that validates late (late_validation.cc).
  absl::Status PrepareLate();
  absl::Status RunLate(int64_t begin, StepSource& source);
  absl::Status RunUpdates(Running& step);
  absl::Status Validate(Running& step);
  absl::StatusOr<double> RunScale(Running& step, bool assumed);
  absl::Status AwaitAllButNorms();
  void MarkUndone(int64_t step, size_t first);
  absl::Status Start(int exchange, const Moment& moment);
  // What an exchange waits for, for a message.
  std::string Awaited(StepKind kind, int exchange) const;
  // "rank 1", with the replica where there are several.
  std::string OwnName() const;
  // Those of the exchanges that are under way.
  absl::Status AwaitAll(StepKind kind, absl::Span<const int> exchanges, int action);
  // Forgets, in front of a round, all but kTracedRounds - 1 of the trace.
  void KeepLastRounds();
  absl::Status AwaitExchanges(StepKind kind);
  absl::Status AwaitRest(StepKind kind);
  // The one place where a rank waits for another.
  absl::Status Await(StepKind kind, int exchange, int action);
  void ForgetTimes();
  // Without `sums`, of what is no gradient: a first microbatch does not read what its sums held before.
  absl::StatusOr<bool> HasNonFinite(const google::protobuf::RepeatedField<int32_t>& tensors,
                                    void* const* addresses, bool sums, bool* nan);
  absl::Status Annotate(StepKind kind, int index, const absl::Status& status) const;
  absl::Status AnnotateNode(int program, int instruction, const absl::Status& status) const;
  absl::Status AnnotatePort(absl::string_view what, const plan::Port& port, const absl::Status& status) const;
  // Of what belongs to no action.
  absl::Status AnnotateStep(const Moment& moment, const absl::Status& status) const;
  // ", step 3", of a plan that trains.
  std::string StepName(StepKind kind, int64_t step) const;

  plan::RankPlan plan_;
  Device& device_;
  LaggingDevice* const lagging_;  // the same device; null: it is never behind
  Transport& transport_;
  ExecutorOptions options_;
  std::unique_ptr<Stream> stream_;
  std::byte* arena_ = nullptr;
  std::byte* workspace_ = nullptr;
  int64_t workspace_bytes_ = 0, block_bytes_ = 0;
  std::vector<PreparedProgram> programs_;
  List lists_[2];
  int64_t step_ = 0;  // of the action that runs, for messages
  int largest_lag_ = 0;
  int last_action_ = -1;                // of a step, in an asynchronous plan
  std::vector<Running> running_;        // by step modulo steps_at_once()
  std::vector<int> version_slots_ = {0};  // by version modulo delay + 1
  int newest_slot_ = 0;                 // of the newest weight version
  LateValidation late_;
  bool runs_behind_ = false;
  std::unique_ptr<Stream> copies_;                  // of blocks, beside stream_
  std::vector<std::unique_ptr<StepBlock>> blocks_;  // by step modulo their number
  std::vector<std::string> action_names_[2];        // by list
  std::vector<TraceSlice> trace_;
  static constexpr size_t kTracedRounds = 8;
  std::array<size_t, kTracedRounds> round_starts_ = {};  // in trace_, the latest first
  std::vector<std::vector<RunTimes>> measured_;          // by program and instruction
  double in_instructions_ = 0;                           // seconds of this action so far
  RunTimes beside_instructions_;
  int64_t steps_run_ = 0;
  std::vector<std::byte> scratch_;               // host copy of an operand, with check_finite
};

}  // namespace pipec
