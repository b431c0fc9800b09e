#include "runtime/driver/train_rounds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using Clock = std::chrono::steady_clock;

// Lets every rank into the same steps. Ranks come to a step at different times, so an interrupt takes effect behind the
// last step that anybody has begun.
class Gate {
 public:
  Gate(int64_t begin, int64_t end, const std::atomic<bool>* stop) : begun_(begin), end_(end), stop_(stop) {}

  bool Admit(int64_t step) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stop_ != nullptr && *stop_) end_ = std::min(end_, begun_);
    if (step >= end_) return false;
    begun_ = std::max(begun_, step + 1);
    return true;
  }
  int64_t end() const { return std::min(begun_, end_); }

 private:
  std::mutex mutex_;
  int64_t begun_, end_;  // behind the last step
  const std::atomic<bool>* const stop_;
};

class RankSource : public StepSource {
 public:
  RankSource(Session& session, int rank, const RoundsJob& job, const RoundsState& state, Gate& gate,
             const std::function<absl::Status(const StepReport&)>* report)
      : session_(session),
        rank_(rank),
        rank_plan_(session.executor(rank).rank_plan()),
        job_(job),
        gate_(gate),
        report_(report),
        scaler_(state.scaler),
        ended_(state.step),
        scaled_(session.manifest().precision == "fp16"),
        may_begin_again_(session.may_begin_again()),
        samples_(session.manifest().batch()),
        slots_(session.executor(rank).steps_at_once()) {
    for (Slot& slot : slots_) slot.feed = session.NewFeed(rank);
  }

  bool Admit(int64_t step) override { return !stopped_ && gate_.Admit(step); }

  absl::Status Begin(int64_t step, absl::Span<const StepScalars>* scalars, StepData* data) override {
    Slot& slot = slots_[step % slots_.size()];
    slot.step = step;
    job_.batches->Fill(step, absl::MakeSpan(samples_));
    const Manifest& manifest = session_.manifest();
    const absl::Span<const int64_t> samples = samples_;
    absl::Status status =
        slot.feed->Fill(*job_.data, session_.PartOf(rank_, samples, manifest.batch() / manifest.replicas));
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat(session_.NameOf(rank_), ": ", status.message()));
    LossScaler scaler = scaler_;
    if (may_begin_again_ && ended_ < step) scaler.Update(/*overflow=*/false);
    slot.scalars.Set(*job_.settings, manifest, step, scaled_ ? &scaler : nullptr,
                     rank_plan_.lr_by_delay() ? static_cast<int>(rank_plan_.weight_delay()) : 0);
    *scalars = session_.PartOf(rank_, absl::MakeConstSpan(slot.scalars.microbatches), manifest.microbatches);
    *data = slot.feed->data();
    return absl::OkStatus();
  }

  absl::Status End(int64_t step, const StepResult& result) override {
    const TrainingScalars& scalars = slots_[step % slots_.size()].scalars;
    StepReport report;
    report.step = step + 1;
    report.steps = job_.settings->steps;
    if (session_.computes()) report.loss = result.loss;
    const Hyperparameters& h = job_.settings->hyperparameters;
    report.lr = h.lr.value.value_or(0) * LrFactor(h.schedule, step, job_.settings->steps, h.warmup_steps);
    if (session_.computes()) report.gradient_norm = result.gradient_norm;
    report.ahead = result.ahead;
    report.redone = result.redone;
    ended_ = step + 1;
    const LossScaler before = scaler_;
    if (scaled_) {
      report.loss_scale = scalars.microbatches[0].loss_scale;
      scaler_.Update(result.stopped);
      report.skipped = result.stopped;
      report.skipped_steps = scaler_.skipped_steps();
      // Steps that have begun learn how many updates came before theirs.
      for (Slot& slot : slots_) {
        for (StepScalars& s : slot.scalars.microbatches) {
          if (slot.step > step) s.updates = slot.step - scaler_.skipped_steps();
        }
      }
    }
    const bool checked = job_.options->executor.check_finite && result.first.found;
    const bool bad = result.stopped ? !scaled_ || scaler_.exhausted() : checked && result.first.origin;
    if (bad && !may_begin_again_) return NotFinite(report, result);
    if (bad) {
      stopped_ = {step, result, before};
      return absl::OkStatus();
    }
    if (report_ == nullptr) return absl::OkStatus();
    const Clock::time_point now = Clock::now();
    report.samples_per_second =
        static_cast<double>(samples_.size()) / std::chrono::duration<double>(now - last_end_).count();
    last_end_ = now;
    return (*report_)(report);
  }

  // Where the run stands when it is over; `end`: if no step has stopped it.
  void SetState(int64_t end, RoundsState* state) const {
    state->step = end;
    state->scaler = scaler_;
    if (!stopped_) return;
    state->step = stopped_->step;
    state->stopped = stopped_->result;
    state->scaler_of_stopped = stopped_->scaler;
  }

 private:
  struct Stopped {
    int64_t step;
    StepResult result;
    LossScaler scaler;
  };
  struct Slot {
    int64_t step = -1;
    std::unique_ptr<Feed> feed;
    TrainingScalars scalars;
  };

  absl::Status NotFinite(const StepReport& report, const StepResult& result) const {
    std::string text = absl::StrCat("step ", report.step, ": ");
    if (result.stopped) {
      const bool loss = result.loss.has_value() && !std::isfinite(*result.loss);
      const double value = loss ? *result.loss : result.gradient_norm.value_or(0);
      absl::StrAppend(&text, loss ? "the loss" : "the norm of the gradients", " is ",
                      std::isnan(value) ? "nan" : "infinite", "; ");
    }
    absl::StrAppend(&text, result.first.found ? OriginOf(result.first) : "--check-finite finds where it came from",
                    "; try a smaller --lr");
    return absl::FailedPreconditionError(text);
  }

  Session& session_;
  const int rank_;
  const plan::RankPlan& rank_plan_;
  const RoundsJob& job_;
  Gate& gate_;
  const std::function<absl::Status(const StepReport&)>* const report_;  // null: another rank reports
  LossScaler scaler_;  // as of the steps that have ended
  int64_t ended_;
  std::optional<Stopped> stopped_;
  const bool scaled_, may_begin_again_;
  std::vector<int64_t> samples_;
  std::vector<Slot> slots_;
  Clock::time_point last_end_ = Clock::now();
};

}  // namespace

absl::Status TrainRounds(Session& session, const RoundsJob& job, int64_t end, RoundsState* state,
                         const std::function<absl::Status(const StepReport&)>& report) {
  Gate gate(state->step, end, job.options->stop);
  std::vector<std::unique_ptr<RankSource>> sources;
  std::vector<StepSource*> pointers;
  bool reported = false;
  for (int rank = 0; rank < session.ranks(); ++rank) {
    const bool reports = !reported && session.executor(rank).rank_plan().loss() >= 0;
    reported |= reports;
    sources.push_back(
        std::make_unique<RankSource>(session, rank, job, *state, gate, reports ? &report : nullptr));
    pointers.push_back(sources.back().get());
  }
  RETURN_IF_ERROR(session.RunRounds(state->step, pointers));
  sources[0]->SetState(gate.end(), state);
  return absl::OkStatus();
}

std::string OriginOf(const NonFinite& first) {
  std::string text = absl::StrCat(
      first.origin ? "the first such value came" : "such values were there before the step, first used",
      " in ", first.replica >= 0 ? absl::StrCat("replica ", first.replica, ", ") : "", "stage ", first.stage,
      ", node '", first.node, "' (", first.op, "), ", plan::ActionKind_Name(first.kind));
  if (first.microbatch >= 0) absl::StrAppend(&text, " of microbatch ", first.microbatch);
  return text;
}

}  // namespace pipec
