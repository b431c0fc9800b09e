#include "tools/compile_module.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "passes/memory_limit.h"
#include "passes/pass_manager.h"
#include "runtime/base/least_memory.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Plans aim at steps of this ratio from the memory of the fastest down: at which there are does not depend on the
// limit.
constexpr double kStep = 0.9;
// With so many nodes not all of them are made: they would take long.
constexpr int kManyNodes = 2000;
// Of the memory, what is not worth another plan.
constexpr int64_t kSmallPart = 50;

// How a plan is made to take less memory.
struct Way {
  std::vector<int64_t> cut_memory;  // CompileOptions::cut_memory
  bool recompute_all = false;
};

// What a rank needs at least, whatever the layout: so much is live at once.
int64_t LiveBytes(const RankMemory& memory) { return memory.lower_bound + memory.workspace_bytes; }

// Of these, what the cut does not count: it comes and goes.
int64_t UncountedBytes(const RankMemory& memory) {
  int64_t bytes = LiveBytes(memory);
  for (int kind = 0; kind < kBufferKinds; ++kind) {
    if (kind != static_cast<int>(BufferKind::kTransient) && kind != static_cast<int>(BufferKind::kMessage))
      bytes -= memory.peaks[kind];
  }
  return bytes;
}

class Compiler {
 public:
  Compiler(CompileFlags& flags, LowerFunction lower) : given_(flags), flags_(flags), lower_(lower) {}

  absl::StatusOr<std::unique_ptr<Module>> Run() {
    absl::Status status = Try({});
    // Without a plan there is nothing that a smaller one could be derived from.
    const bool planned = module_ != nullptr && !module_->memory.empty();
    if (!absl::IsResourceExhausted(status) || !planned || !HasChoice()) {
      if (absl::IsResourceExhausted(status) && planned) return Refusal();
      if (!status.ok()) return status;
      return Finished();
    }
    const bool open = LeavesRecomputeOpen();
    RETURN_IF_ERROR(Descend());
    if (open && (!best_ || !has_many_nodes_)) {
      status = Try({{}, true});
      if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
    }
    if (!best_) return Refusal();
    if (has_many_nodes_) RETURN_IF_ERROR(Fill());
    Restore();
    return Finished();
  }

 private:
  const CompileOptions& options() const { return flags_.context().options; }
  bool LeavesRecomputeOpen() const {
    return options().mode == Mode::kTrain && options().recompute == Recompute::kAuto;
  }
  bool HasChoice() const { return LeavesRecomputeOpen() || (options().cut.empty() && options().ranks > 1); }

  // Trials have drafts of memory, which say whether it fits: the one that is returned is laid out as well as it can be.
  absl::StatusOr<std::unique_ptr<Module>> Finished() {
    flags_.SetDraftMemory(false);
    if (module_->level == Level::kPlanned) RETURN_IF_ERROR(lower_(*module_, {"plan-memory"}));
    return std::move(module_);
  }

  // Of the plan that needs least, and what it needs when laid out as well as it can be.
  absl::Status Refusal() {
    draft_ = false;
    return Try(least_way_);
  }

  // Sets module_, and remembers the way if it is the best so far.
  absl::Status Try(const Way& way) {
    if (std::exchange(is_last_best_, false)) kept_ = Kept{std::move(module_), flags_};
    flags_ = given_;
    flags_.SetDraftMemory(draft_);
    flags_.CutWithin(way.cut_memory, way.recompute_all);
    module_ = nullptr;
    ASSIGN_OR_RETURN(module_, flags_.Import());
    const absl::Status status = lower_(*module_, {});
    if (status.ok() && module_->simulation.step_seconds < best_seconds_) {
      best_ = way;
      is_last_best_ = true;
      kept_.reset();
      best_seconds_ = module_->simulation.step_seconds;
    }
    if (absl::IsResourceExhausted(status) && !module_->memory.empty()) {
      const double needed = OfLargest([](const RankMemory& memory) { return memory.needed_bytes(); });
      if (needed < least_needed_) {
        least_needed_ = needed;
        least_way_ = way;
      }
    }
    return status;
  }

  // Sets module_ and the flags to what the best way made.
  void Restore() {
    if (std::exchange(is_last_best_, true)) return;
    module_ = std::move(kept_->module);
    flags_ = std::move(kept_->flags);
  }

  // How much smaller than the largest device's the memory of this rank's is.
  double ShareOfLargest(int rank) const {
    const std::vector<int64_t> limits = MemoryLimits(options().cluster);
    return static_cast<double>(limits[rank]) / *std::max_element(limits.begin(), limits.end());
  }

  // What a device like the largest must have for the rank that needs most of its own, of bytes by rank.
  double OfLargest(absl::FunctionRef<int64_t(const RankMemory&)> bytes) const {
    double most = 0;
    for (size_t r = 0; r < module_->memory.size(); ++r)
      most = std::max(most, static_cast<double>(bytes(module_->memory[r])) / ShareOfLargest(r));
    return most;
  }

  enum class Outcome { kFits, kTooLarge, kNoCut };

  // The plan that aims at the k-th step.
  absl::StatusOr<Outcome> Visit(int k) {
    if (const auto it = visited_.find(k); it != visited_.end()) return it->second;
    if (Aim(k) < 1) return Outcome::kNoCut;
    Way way;
    for (size_t r = 0; r < uncounted_.size(); ++r)
      way.cut_memory.push_back(
          std::max<int64_t>(static_cast<int64_t>(Aim(k) * ShareOfLargest(r)) - uncounted_[r], 1));
    const absl::Status status = Try(way);
    if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
    const bool planned = module_ != nullptr && !module_->memory.empty();
    if (!planned) least_cut_ = LeastMemory(status);
    return visited_[k] = status.ok() ? Outcome::kFits : planned ? Outcome::kTooLarge : Outcome::kNoCut;
  }

  double Aim(int k) const { return from_ * std::pow(kStep, k); }
  // The first step at which no device's share is above this.
  int StepBelow(double aim) const {
    return std::max(1, static_cast<int>(std::ceil(std::log(aim / from_) / std::log(kStep))));
  }

  // From the plan that was made last down: all, or with many nodes from the first that aims at or below the limit
  // to the first that fits.
  absl::Status Descend() {
    from_ = OfLargest(LiveBytes);
    has_many_nodes_ = module_->graph.num_nodes() >= kManyNodes;
    for (const RankMemory& memory : module_->memory) uncounted_.push_back(UncountedBytes(memory));
    const std::vector<int64_t> limits = MemoryLimits(options().cluster);
    int k = has_many_nodes_ ? StepBelow(static_cast<double>(*std::max_element(limits.begin(), limits.end()))) : 1;
    for (;; ++k) {
      ASSIGN_OR_RETURN(const Outcome outcome, Visit(k));
      if (outcome == Outcome::kNoCut) return has_many_nodes_ ? FindLeast(k) : absl::OkStatus();
      if (outcome == Outcome::kFits && has_many_nodes_) return absl::OkStatus();
    }
  }

  // What the best plan leaves free the cut may fill too, if that makes a faster one.
  absl::Status Fill() {
    if (best_->cut_memory.empty()) return absl::OkStatus();
    Restore();
    const std::vector<int64_t> limits = MemoryLimits(options().cluster);
    Way way = *best_;
    bool is_free = false;
    for (size_t r = 0; r < limits.size(); ++r) {
      const int64_t left = limits[r] - module_->memory[r].needed_bytes();
      is_free |= left > limits[r] / kSmallPart;
      way.cut_memory[r] += left;
    }
    const absl::Status status = is_free ? Try(way) : absl::OkStatus();
    return absl::IsResourceExhausted(status) ? absl::OkStatus() : status;
  }

  // Nothing fits, and the `without`-th step has no cut: the last that has one needs least, or nearly.
  absl::Status FindLeast(int without) {
    int last = 0;  // has one
    for (const auto& [k, outcome] : visited_) last = k < without ? std::max(last, k) : last;
    const std::vector<int64_t> limits = MemoryLimits(options().cluster);
    const bool equal = std::equal(limits.begin() + 1, limits.end(), limits.begin());
    if (equal && least_cut_ && without - last > 1) {
      // Devices that are alike were told what would do.
      const int64_t uncounted = *std::max_element(uncounted_.begin(), uncounted_.end());
      const int k = std::clamp(StepBelow(static_cast<double>(*least_cut_ + uncounted)) - 1, last + 1, without - 1);
      ASSIGN_OR_RETURN(const Outcome outcome, Visit(k));
      without = outcome == Outcome::kNoCut ? k : k + 1;
      if (outcome != Outcome::kNoCut) last = k;
    }
    while (without - last > 1) {
      const int k = last + (without - last) / 2;
      ASSIGN_OR_RETURN(const Outcome outcome, Visit(k));
      (outcome == Outcome::kNoCut ? without : last) = k;
    }
    return absl::OkStatus();
  }

  const CompileFlags given_;
  CompileFlags& flags_;
  const LowerFunction lower_;
  bool draft_ = true;
  std::unique_ptr<Module> module_;
  std::optional<Way> best_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
  bool is_last_best_ = false;  // module_ is what came of it; else `kept_` has that
  struct Kept {
    std::unique_ptr<Module> module;
    CompileFlags flags;
  };
  std::optional<Kept> kept_;
  double from_ = 0;  // bytes of a device like the largest that are live at once in the fastest plan
  std::vector<int64_t> uncounted_;  // by rank, bytes that the cut does not count
  bool has_many_nodes_ = false;
  std::map<int, Outcome> visited_;
  std::optional<int64_t> least_cut_;  // bytes a device, in the cut's respect
  Way least_way_;
  double least_needed_ = std::numeric_limits<double>::infinity();
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags, LowerFunction lower) {
  return Compiler(flags, lower).Run();
}

absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags) {
  return CompileModule(flags, [&flags](Module& module, absl::Span<const std::string> passes) {
    return passes.empty() ? RunPipeline(module, flags.context()) : RunPasses(module, flags.context(), passes);
  });
}

}  // namespace pipec
