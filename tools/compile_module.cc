#include "tools/compile_module.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "passes/memory_limit.h"
#include "passes/pass_manager.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// From plan to plan, how much of the memory of the fastest is aimed at.
constexpr double kStep = 0.9;

// How a plan is made to take less memory.
struct Way {
  std::vector<int64_t> cut_memory;  // CompileOptions::cut_memory
  bool recompute_all = false;
};

// What a rank keeps over a step, which the cut counts; the rest comes and goes.
int64_t KeptBytes(const RankMemory& memory) {
  std::map<int64_t, int64_t> bytes_at;  // by offset, which buffers that take turns share
  for (const Buffer& buffer : memory.buffers) {
    if (buffer.kind != BufferKind::kTransient && buffer.kind != BufferKind::kMessage)
      bytes_at[buffer.offset] = buffer.slots * buffer.stride();
  }
  int64_t bytes = 0;
  for (const auto& [offset, size] : bytes_at) bytes += size;
  return bytes;
}

class Compiler {
 public:
  Compiler(CompileFlags& flags, absl::FunctionRef<absl::Status(Module&)> lower)
      : given_(flags), flags_(flags), lower_(lower) {}

  absl::StatusOr<std::unique_ptr<Module>> Run() {
    absl::Status status = Try({});
    // Without a plan there is nothing that a smaller one could be derived from.
    const bool planned = module_ != nullptr && !module_->memory.empty();
    if (!absl::IsResourceExhausted(status) || !planned || !HasChoice()) {
      if (!status.ok()) return status;
      return std::move(module_);
    }
    const bool open = LeavesRecomputeOpen();
    RETURN_IF_ERROR(Descend());
    if (open) {
      status = Try({{}, true});
      if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
    }
    if (!best_) return least_refusal_;
    RETURN_IF_ERROR(Try(*best_));
    return std::move(module_);
  }

 private:
  const CompileOptions& options() const { return flags_.context().options; }
  bool LeavesRecomputeOpen() const {
    return options().mode == Mode::kTrain && options().recompute == Recompute::kAuto;
  }
  bool HasChoice() const { return LeavesRecomputeOpen() || (options().cut.empty() && options().ranks > 1); }

  // Sets module_, and remembers the way if it is the best so far.
  absl::Status Try(const Way& way) {
    flags_ = given_;
    flags_.CutWithin(way.cut_memory, way.recompute_all);
    module_ = nullptr;
    ASSIGN_OR_RETURN(module_, flags_.Import());
    const absl::Status status = lower_(*module_);
    if (status.ok() && module_->simulation.step_seconds < best_seconds_) {
      best_ = way;
      best_seconds_ = module_->simulation.step_seconds;
    }
    if (absl::IsResourceExhausted(status) && !module_->memory.empty() && NeededOfLargest() < least_needed_) {
      least_needed_ = NeededOfLargest();
      least_refusal_ = status;
    }
    return status;
  }

  // How much smaller than the largest device's the memory of this rank's is.
  double ShareOfLargest(int rank) const {
    const std::vector<int64_t> limits = MemoryLimits(options().cluster);
    return static_cast<double>(limits[rank]) / *std::max_element(limits.begin(), limits.end());
  }

  // What a device like the largest must have for the rank that needs most of its own.
  double NeededOfLargest() const {
    double needed = 0;
    for (size_t r = 0; r < module_->memory.size(); ++r)
      needed = std::max(needed, static_cast<double>(module_->memory[r].needed_bytes()) / ShareOfLargest(r));
    return needed;
  }

  // From the plan that was made last down, until no cut is within what is aimed at.
  absl::Status Descend() {
    const double from = NeededOfLargest();
    std::vector<int64_t> uncounted;
    for (const RankMemory& memory : module_->memory) uncounted.push_back(memory.needed_bytes() - KeptBytes(memory));
    for (double aim = from * kStep; aim >= 1; aim *= kStep) {
      Way way;
      for (size_t r = 0; r < uncounted.size(); ++r)
        way.cut_memory.push_back(std::max<int64_t>(static_cast<int64_t>(aim * ShareOfLargest(r)) - uncounted[r], 1));
      const absl::Status status = Try(way);
      if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
      if (module_ == nullptr || module_->memory.empty()) break;
    }
    return absl::OkStatus();
  }

  const CompileFlags given_;
  CompileFlags& flags_;
  const absl::FunctionRef<absl::Status(Module&)> lower_;
  std::unique_ptr<Module> module_;
  std::optional<Way> best_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
  absl::Status least_refusal_;
  double least_needed_ = std::numeric_limits<double>::infinity();
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags,
                                                      absl::FunctionRef<absl::Status(Module&)> lower) {
  return Compiler(flags, lower).Run();
}

absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags) {
  return CompileModule(flags, [&flags](Module& module) { return RunPipeline(module, flags.context()); });
}

}  // namespace pipec
