#include "runtime/driver/train.h"

#include <chrono>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"
#include "runtime/driver/batches.h"
#include "runtime/driver/evaluate.h"
#include "runtime/driver/loss_scaler.h"
#include "runtime/driver/metrics_file.h"
#include "runtime/driver/train_rounds.h"
#include "runtime/driver/training_scalars.h"

namespace pipec {
namespace {

using Clock = std::chrono::steady_clock;

class Trainer {
 public:
  Trainer(Session& session, const RunOptions& options, const DataSource& data, const DataSource* eval_data,
          TraceFile* trace, RunObserver& observer, RunResult* result)
      : session_(session),
        options_(options),
        data_(data),
        eval_data_(eval_data),
        trace_(trace),
        observer_(observer),
        result_(*result),
        settings_{WithDefaults(options.hyperparameters, session.manifest().optimizer), {}, options.seed, 0},
        batches_(data.samples(), session.manifest().batch(), options.shuffle, options.seed),
        samples_(session.manifest().batch()) {
    if (session.manifest().precision == "fp16") scaler_.emplace();
  }

  absl::Status Run() {
    RETURN_IF_ERROR(Prepare());
    ASSIGN_OR_RETURN(MetricsFile metrics, MetricsFile::Open(options_.metrics));
    RETURN_IF_ERROR(EvaluateNow(0));
    // A look at every instruction, or its time, wants steps that are apart.
    const bool apart = options_.executor.check_finite || !options_.profile.empty() ||
                       (session_.is_behind() && !options_.trace.empty());
    if (session_.asynchronous() || (session_.may_begin_again() && !apart)) return RunRounds(metrics);
    for (int64_t step = 0; step < settings_.steps; ++step) {
      if (options_.stop != nullptr && *options_.stop) return Interrupted(step);
      ASSIGN_OR_RETURN(const StepReport report, Step(step));
      RETURN_IF_ERROR(metrics.Write(report));
      observer_.OnStep(report);
      if (NextPause(step) == step + 1) RETURN_IF_ERROR(EvaluateNow(step + 1));
    }
    return absl::OkStatus();
  }

 private:
  // Behind the last step, or where the next evaluation is: the first such place behind `step`.
  int64_t NextPause(int64_t step) const {
    if (options_.eval_every == 0 || eval_data_ == nullptr) return settings_.steps;
    return std::min(settings_.steps, (step / options_.eval_every + 1) * options_.eval_every);
  }

  absl::Status Interrupted(int64_t step) const {
    return absl::CancelledError(absl::StrCat("interrupted after step ", step, " of ", settings_.steps));
  }

  // The pipeline is emptied where an evaluation stands, and fills again behind it.
  absl::Status RunRounds(MetricsFile& metrics) {
    const RoundsJob job{&options_, &settings_, &data_, &batches_};
    RoundsState state;
    if (session_.asynchronous() && NextPause(0) < settings_.steps) {
      observer_.OnNote(
          "every evaluation empties the pipeline; behind it the first steps use the same weights again");
    }
    Clock::time_point begin = Clock::now();
    while (state.step < settings_.steps) {
      const int64_t end = NextPause(state.step);
      RETURN_IF_ERROR(TrainRounds(session_, job, end, &state, [&](const StepReport& report) -> absl::Status {
        const Clock::time_point now = Clock::now();
        Count(report, std::chrono::duration<double>(now - begin).count());
        begin = now;
        RETURN_IF_ERROR(metrics.Write(report));
        observer_.OnStep(report);
        return absl::OkStatus();
      }));
      if (trace_ != nullptr) trace_->Add(session_, StepKind::kTrain, state.step);
      if (state.stopped) return Stopped(state);
      if (state.step < end) return Interrupted(state.step);
      RETURN_IF_ERROR(EvaluateNow(state.step));
      begin = Clock::now();
    }
    return absl::OkStatus();
  }

  // What Step says of such a step.
  absl::Status Stopped(const RoundsState& state) {
    batches_.Fill(state.step, absl::MakeSpan(samples_));
    scalars_.Set(settings_, session_.manifest(), state.step, scaler_ ? &state.scaler_of_stopped : nullptr, 0);
    if (scaler_) scaler_ = state.scaler;
    return NotFinite(state.step, *state.stopped, state.stopped->loss, state.stopped->gradient_norm);
  }

  void Count(const StepReport& report, double seconds) {
    result_.seconds += seconds;
    result_.samples += static_cast<int64_t>(samples_.size());
    result_.steps = report.step;
    if (report.skipped) ++result_.skipped_steps;
    result_.updates_ahead += report.ahead;
    result_.updates_redone += report.redone;
    if (!report.loss.has_value() || !std::isfinite(*report.loss)) return;
    if (!result_.first_loss.has_value()) result_.first_loss = report.loss;
    result_.last_loss = report.loss;
  }

  absl::Status Prepare() {
    const int64_t per_epoch = batches_.steps_per_epoch();
    if (options_.steps.has_value()) {
      settings_.steps = *options_.steps;
    } else {
      settings_.steps =
          static_cast<int64_t>(std::ceil(options_.epochs.value_or(1) * static_cast<double>(per_epoch)));
    }
    if (per_epoch == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the data has ", Counted(data_.samples(), "sample", "samples"), ", one batch needs ",
          session_.manifest().batch(), "; compile with a smaller --batch or fewer --microbatches"));
    }
    ASSIGN_OR_RETURN(settings_.base, Resolve(settings_.hyperparameters, session_.trained_parameters()));
    observer_.OnNote(Describe(settings_.hyperparameters, session_.manifest().optimizer));
    if (session_.executor(0).rank_plan().lr_by_delay())
      observer_.OnNote(
          "a stage whose weights are d updates late begins with lr / (d + 1) (--staleness=lr); the lr of a "
          "step is told without that");
    observer_.OnNote(absl::StrCat(Counted(data_.samples(), "sample", "samples"), ", ",
                                  session_.manifest().batch(), " a step, ",
                                  Counted(per_epoch, "step", "steps"), " an epoch, ",
                                  Counted(settings_.steps, "step", "steps"), " to do"));
    return absl::OkStatus();
  }

  absl::StatusOr<StepReport> Step(int64_t step) {
    const Clock::time_point begin = Clock::now();
    const double factor = LrFactor(settings_.hyperparameters.schedule, step, settings_.steps,
                                   settings_.hyperparameters.warmup_steps);
    batches_.Fill(step, absl::MakeSpan(samples_));
    scalars_.Set(settings_, session_.manifest(), step, scaler_ ? &*scaler_ : nullptr, 0);
    ASSIGN_OR_RETURN(const StepResult done,
                     session_.Run(StepKind::kTrain, data_, samples_, scalars_.microbatches));
    ASSIGN_OR_RETURN(const std::optional<double> loss, session_.ReadScalar(&plan::RankPlan::loss));
    ASSIGN_OR_RETURN(const std::optional<double> norm, session_.ReadScalar(&plan::RankPlan::gradient_norm));
    StepReport report;
    if (scaler_) {
      report.loss_scale = scaler_->scale();
      scaler_->Update(done.stopped);
      report.skipped = done.stopped;
      report.skipped_steps = scaler_->skipped_steps();
    }
    if (done.stopped && (!scaler_ || scaler_->exhausted())) return NotFinite(step, done, loss, norm);
    if (report.skipped && done.first.found) {
      observer_.OnNote(
          absl::StrCat("step ", step + 1, " skipped, not all its values are finite: ", OriginOf(done.first)));
    }
    if (!report.skipped && done.first.found && options_.executor.check_finite && done.first.origin) {
      return NotFinite(step, done, loss, norm);
    }
    report.step = step + 1;
    report.steps = settings_.steps;
    report.loss = loss;
    report.lr = settings_.hyperparameters.lr.value.value_or(0) * factor;
    report.gradient_norm = norm;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    report.samples_per_second = static_cast<double>(samples_.size()) / seconds;
    Count(report, seconds);
    if (trace_ != nullptr) trace_->Add(session_, StepKind::kTrain, step + 1);
    return report;
  }

  // Nothing was updated; the same step once more, looking at every instruction, finds where it came from.
  absl::Status NotFinite(int64_t step, StepResult done, const std::optional<double>& loss,
                         const std::optional<double>& norm) {
    if (!options_.executor.check_finite) {
      for (int rank = 0; rank < session_.ranks(); ++rank) session_.executor(rank).set_check_finite(true);
      ASSIGN_OR_RETURN(done, session_.Run(StepKind::kTrain, data_, samples_, scalars_.microbatches));
    }
    const bool bad_loss = loss.has_value() && !std::isfinite(*loss);
    std::string text = absl::StrCat("step ", step + 1, ": ");
    if (done.stopped) {
      absl::StrAppend(&text, bad_loss ? "the loss" : "the norm of the gradients", " is ",
                      std::isnan(bad_loss ? *loss : norm.value_or(0)) ? "nan" : "infinite", "; ");
    }
    if (!done.first.found) {
      return absl::FailedPreconditionError(absl::StrCat(text, "no instruction's result is at fault"));
    }
    absl::StrAppend(&text, OriginOf(done.first));
    if (scaler_)
      absl::StrAppend(&text, "; smaller loss scales did not help, the last was ", scaler_->scale());
    return absl::FailedPreconditionError(
        absl::StrCat(text, "; nothing was updated; try a smaller --lr, or --clip-norm"));
  }

  absl::Status EvaluateNow(int64_t step) {
    if (eval_data_ == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(const EvaluationReport report,
                     Evaluate(session_, *eval_data_, options_, step, observer_));
    result_.evaluations.push_back(report);
    observer_.OnEvaluation(report);
    return absl::OkStatus();
  }

  Session& session_;
  const RunOptions& options_;
  const DataSource& data_;
  const DataSource* eval_data_;
  TraceFile* trace_;
  RunObserver& observer_;
  RunResult& result_;
  TrainingSettings settings_;
  TrainingBatches batches_;
  std::vector<int64_t> samples_;
  TrainingScalars scalars_;
  std::optional<LossScaler> scaler_;  // where gradients are float16
};

}  // namespace

absl::Status Train(Session& session, const RunOptions& options, const DataSource& data,
                   const DataSource* eval_data, TraceFile* trace, RunObserver& observer, RunResult* result) {
  return Trainer(session, options, data, eval_data, trace, observer, result).Run();
}

}  // namespace pipec
